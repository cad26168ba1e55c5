package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// why fails t unless the lease's context has ended with this author and reason of a break.
func why(t *testing.T, l *holdfast.Lease, author, reason string) {
	t.Helper()
	cause := context.Cause(l.Context())
	var broken *holdfast.BrokenError
	if !errors.Is(cause, holdfast.ErrLost) || !errors.Is(cause, holdfast.ErrBroken) || !errors.As(cause, &broken) ||
		broken.Author != author || broken.Reason != reason {
		t.Errorf("cause %v, want ErrLost and ErrBroken by %s: %s", cause, author, reason)
	}
}

func TestBreakEndsContextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		var losses atomic.Int32
		c := newClient(t, store, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Lost && errors.Is(e.Err, holdfast.ErrBroken) {
				losses.Add(1)
			}
		}})
		admin := newClient(t, store, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Hour})
		other := mustAcquire(t, c, "b", nil)
		start := time.Now()
		broken, err := admin.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"})
		need(t, err == nil && len(broken) == 1 && broken[0].Token == l.Token(), "Break = %+v, %v; want the lease with token %d", broken, err, l.Token())
		<-l.Context().Done()
		took := time.Since(start)
		expect(t, took == 0, "the context ended %s after the break, want at once", took)
		why(t, l, "ada", "its node is gone")
		if err := l.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) || !strings.HasSuffix(err.Error(), "lease is lost: broken by ada: its node is gone") {
			t.Errorf("Release = %v, want the break", err)
		}
		synctest.Wait()
		n := losses.Load()
		expect(t, n == 1, "%d events of a loss, want 1", n)
		expect(t, other.Valid(), "a lease of another name has ended too")
		other.Release(t.Context())
	})
}

// TestBreakIsFoundAtRenewal checks that without a message the next renewal detects the break, with
// its author and reason.
func TestBreakIsFoundAtRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		engine := &silent{newFaultyOn(store)}
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 30 * time.Second})
		start := time.Now()
		_, err := newClient(t, store, nil).Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "stuck"})
		must(t, err)
		<-l.Context().Done()
		took := time.Since(start)
		expect(t, took <= 11*time.Second && took != 0, "the context ended %s after the break, want a third of the TTL", took)
		why(t, l, "ada", "stuck")
		l.Release(t.Context())
	})
}

// TestBreakIsToldByHiddenIDs checks that a holder learns who broke its lease from an engine that
// hides the lease IDs of breaks.
func TestBreakIsToldByHiddenIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		engine := hidesIDs{driver.Forward{Engine: store, Without: driver.Capabilities{Losses: true}}}
		c, admin := newClient(t, engine, nil), newClient(t, store, nil)
		l := mustAcquire(t, c, "a", nil)
		must(t, errOf(admin.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada"})))
		err := l.Verify(t.Context())
		wantErr(t, err, holdfast.ErrBroken)
	})
}

// A hidesIDs is an engine that hides lease IDs, as a server does.
type hidesIDs struct{ driver.Forward }

func (e hidesIDs) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	all, err := e.Forward.Breaks(ctx, name)
	for i := range all {
		all[i].LeaseID = all[i].LeaseID.Hidden()
	}
	return all, err
}

// TestSlowInquiryDelaysLittle checks that a loss is reported soon even if the store does not return
// its reason.
func TestSlowInquiryDelaysLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		engine := &silent{newFaultyOn(store)}
		c := newClient(t, engine, nil)
		var leases []*holdfast.Lease
		for _, name := range []string{"a", "b", "c"} {
			leases = append(leases, mustAcquire(t, c, name, &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff}))
		}
		admin := newClient(t, store, nil)
		for _, l := range leases {
			must(t, errOf(admin.Break(t.Context(), l.Name(), nil)))
		}
		engine.set(func(ctx context.Context, op string) error {
			if op == "breaks" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, nil)
		start := time.Now()
		for _, l := range leases {
			err := l.Extend(t.Context(), time.Minute)
			expect(t, errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrBroken), "Extend = %v, want only ErrLost", err)
		}
		took := time.Since(start)
		expect(t, took <= time.Second, "three losses took %s", took)
		for _, l := range leases {
			l.Release(t.Context())
		}
	})
}

// TestLateBreakSparesSuccessor checks that a break whose reply was lost is repeated, and that the
// repeat does not end the next holder's lease. INVARIANT I6.
func TestLateBreakSparesSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		engine := newFaultyOn(store)
		c, admin := newClient(t, store, nil), newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		var next *holdfast.Lease
		var once sync.Once
		engine.set(nil, func(_ context.Context, op string) (err error) {
			if op == "break" {
				once.Do(func() {
					next = mustAcquire(t, c, "a", nil)
					err = errLink
				})
			}
			return err
		})
		broken, err := admin.Break(t.Context(), "a", nil)
		expect(t, err == nil && len(broken) == 1 && broken[0].LeaseID == l.ID(), "Break = %+v, %v; want the first lease", broken, err)
		n := engine.count("break")
		expect(t, n == 2, "%d requests, want 2", n)
		if err := next.Verify(t.Context()); err != nil {
			t.Errorf("the successor: %v", err)
		}
		next.Release(t.Context())
		l.Release(t.Context())
	})
}

func TestBreakChecksInput(t *testing.T) {
	c := newClient(t, newFaulty(), nil)
	l := mustAcquire(t, c, "a", nil)
	for what, try := range map[string]struct {
		name string
		opts holdfast.BreakOptions
	}{
		"empty name":           {"", holdfast.BreakOptions{}},
		"long reason":          {"a", holdfast.BreakOptions{Reason: strings.Repeat("x", driver.MaxReason+1)}},
		"long author":          {"a", holdfast.BreakOptions{Author: strings.Repeat("x", driver.MaxAuthor+1)}},
		"control character":    {"a", holdfast.BreakOptions{Reason: "a\nb"}},
		"text turned around":   {"a", holdfast.BreakOptions{Author: "a\u202eb"}},
		"reason is not UTF-8":  {"a", holdfast.BreakOptions{Reason: "\xff"}},
		"token beyond the end": {"a", holdfast.BreakOptions{Token: driver.MaxToken + 1}},
	} {
		if _, err := c.Break(t.Context(), try.name, &try.opts); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", what, err)
		}
	}
	if broken, err := c.Records().Breaks(t.Context(), "a"); err != nil || len(broken) != 0 || !l.Valid() {
		t.Errorf("after bad input: %v, %v, valid %t", broken, err, l.Valid())
	}
	if _, err := c.Records().Breaks(t.Context(), ""); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Breaks of no name: %v, want ErrInvalid", err)
	}
	l.Release(t.Context())
}

func TestBreakSaysWhoByDefault(t *testing.T) {
	c := newClient(t, mem.New(nil), &holdfast.Options{Holder: holdfast.Holder{Host: "ops-1", PID: 7}})
	l := mustAcquire(t, c, "a", nil)
	if broken, err := c.Break(t.Context(), "nobody", nil); err != nil || len(broken) != 0 {
		t.Errorf("Break of a free name = %v, %v; want nothing", broken, err)
	}
	if broken, err := c.Break(t.Context(), "a", &holdfast.BreakOptions{Token: l.Token() + 1}); err != nil || len(broken) != 0 {
		t.Errorf("Break with another token = %v, %v; want nothing", broken, err)
	}
	if _, err := c.Break(t.Context(), "a", &holdfast.BreakOptions{Token: l.Token()}); err != nil {
		t.Error(err)
	}
	<-l.Context().Done()
	why(t, l, "ops-1 (pid 7)", "")
	broken, err := c.Records().Breaks(t.Context(), "a")
	expect(t, err == nil && len(broken) == 1 && broken[0].Author == "ops-1 (pid 7)", "Breaks = %+v, %v", broken, err)
	l.Release(t.Context())
}

// TestBreakNeedsEngine checks that the capability decides, whichever methods a wrapper has.
func TestBreakNeedsEngine(t *testing.T) {
	store := mem.New(nil)
	for what, engine := range map[string]driver.Engine{
		"no flag": &unable{newFaultyOn(store)}, "switched off": driver.Forward{Engine: store, Without: driver.Capabilities{Break: true}},
	} {
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		if _, err := c.Break(t.Context(), "a", nil); !errors.Is(err, holdfast.ErrUnsupported) {
			t.Errorf("%s: Break = %v, want ErrUnsupported", what, err)
		}
		if _, err := c.Records().Breaks(t.Context(), "a"); !errors.Is(err, holdfast.ErrUnsupported) {
			t.Errorf("%s: Breaks = %v, want ErrUnsupported", what, err)
		}
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		l.Release(t.Context())
	}
}

// An unable is an engine whose store cannot break locks.
type unable struct{ *faulty }

func (u *unable) Capabilities() driver.Capabilities {
	capable := u.faulty.Capabilities()
	capable.Break = false
	return capable
}

// TestTimeToLookRenewsAtOnce checks that a loss message without a lease makes the client check its
// lease of that name at once, not at the next renewal.
func TestTimeToLookRenewsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		engine := &teller{faulty: newFaultyOn(store)}
		c := newClient(t, engine, nil)
		kept := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Hour})
		byHand := mustAcquire(t, c, "b", &holdfast.AcquireOptions{TTL: time.Hour, KeepAlive: holdfast.KeepAliveOff})
		before := byHand.Deadline()
		time.Sleep(time.Second)
		engine.told(driver.Loss{Name: "a"})
		engine.told(driver.Loss{Name: "b"})
		engine.told(driver.Loss{Name: "c"})
		synctest.Wait()
		n := engine.count("extend")
		expect(t, n == 2, "%d requests, want 2: a renewal of the lease that is kept alive, and a look at the other", n)
		expect(t, kept.Valid() && byHand.Valid() && byHand.Deadline().Equal(before), "a look at a lease that is live has changed it")
		for _, l := range []*holdfast.Lease{kept, byHand} {
			store.Release(t.Context(), driver.ReleaseRequest{Name: l.Name(), LeaseID: l.ID()})
			engine.told(driver.Loss{Name: l.Name()})
			synctest.Wait()
			expect(t, l.Context().Err() != nil, "the lease of %q has ended in the store, and a look has not found out", l.Name())
			l.Release(t.Context())
		}
	})
}

// TestLossOfOneAmongMany checks that the client handles a loss message without a search through all
// of its leases, and finds leases of every mode.
func TestLossOfOneAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &teller{faulty: newFaulty()}
		c := newClient(t, engine, nil)
		var all []*holdfast.Lease
		for i := range 5000 {
			all = append(all, mustAcquire(t, c, fmt.Sprint(i), nil))
		}
		const messages = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range messages {
			engine.told(driver.Loss{Name: all[i].Name(), LeaseID: "another"})
		}
		runtime.ReadMemStats(&after)
		n := (after.TotalAlloc - before.TotalAlloc) / messages
		expect(t, n <= 5000, "a message about a lease of %d allocates %d bytes", len(all), n)
		all = append(all, mustAcquire(t, c, "shared", &holdfast.AcquireOptions{Mode: holdfast.Shared}),
			mustAcquire(t, c, "shared", &holdfast.AcquireOptions{Mode: holdfast.Shared}))
		lost := []int{7, len(all) - 1}
		for _, i := range lost {
			engine.told(driver.Loss{Name: all[i].Name(), LeaseID: all[i].ID(), Err: driver.ErrLost})
		}
		for i, l := range all {
			expect(t, l.Valid() != slices.Contains(lost, i), "the lease %d of %s is valid: %v", i, l.Name(), l.Valid())
		}
	})
}

// A silent is an engine that reports no losses.
type silent struct{ *faulty }

func (s *silent) Capabilities() driver.Capabilities {
	capable := s.faulty.Capabilities()
	capable.Losses = false
	return capable
}

// A teller is an engine that reports the losses that the test passes to told.
type teller struct {
	*faulty
	told func(driver.Loss)
}

func (e *teller) OnLoss(told func(driver.Loss)) (stop func()) {
	e.told = told
	return func() {}
}

func (f *faulty) Break(ctx context.Context, req driver.BreakRequest) (broken []lockinfo.Broken, err error) {
	err = f.do(ctx, "break", func() (err error) {
		broken, err = f.Engine.Break(ctx, req)
		return err
	})
	return broken, err
}

func (f *faulty) Breaks(ctx context.Context, name string) (broken []lockinfo.Broken, err error) {
	err = f.do(ctx, "breaks", func() (err error) {
		broken, err = f.Engine.Breaks(ctx, name)
		return err
	})
	return broken, err
}

// TestBreakOfWhatWasSeen checks that a break with the greatest token seen, and Older, ends the
// leases up to that token and no later ones.
func TestBreakOfWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		c, admin := newClient(t, store, nil), newClient(t, store, nil)
		shared := &holdfast.AcquireOptions{Mode: holdfast.Shared}
		first, second := mustAcquire(t, c, "a", shared), mustAcquire(t, c, "a", shared)
		later := mustAcquire(t, c, "a", shared)
		broken, err := admin.Break(t.Context(), "a", &holdfast.BreakOptions{Token: second.Token(), Older: true})
		expect(t, err == nil && len(broken) == 2, "Break = %+v, %v; want the first two", broken, err)
		if err := later.Verify(t.Context()); err != nil {
			t.Errorf("who came later: %v", err)
		}
		for _, l := range []*holdfast.Lease{first, second, later} {
			l.Release(t.Context())
		}
	})
}

// TestBreakOpensOnlyIfAsked checks that only a break with Closed opens a name that MinHold keeps
// closed, and that it ends no lease.
func TestBreakOpensOnlyIfAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		c := newClient(t, store, nil)
		mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinHold: time.Hour}).Release(t.Context())
		breaks := func(closed bool, want int) {
			t.Helper()
			broken, err := c.Break(t.Context(), "a", &holdfast.BreakOptions{Closed: closed})
			expect(t, err == nil && len(broken) == want, "Break with Closed %t = %+v, %v; want %d leases", closed, broken, err, want)
		}
		breaks(false, 0)
		breaks(true, 1)
		l := mustAcquire(t, c, "a", nil)
		breaks(true, 0)
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("a lease, after Break with Closed: %v", err)
		}
		breaks(false, 1)
		l.Release(t.Context())
	})
}
