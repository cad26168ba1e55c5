package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/contexttest"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(delay(time.Second), delay(2*time.Second))
		c := newClient(t, engine, nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second})
		want := start.Add(10*time.Second - time.Second - 2*time.Millisecond)
		expect(t, l.Deadline().Equal(want), "deadline %s after the request was sent, want 8.998s", l.Deadline().Sub(start))
		r := l.Remaining()
		expect(t, r == time.Until(want), "remaining %s, want %s", r, time.Until(want))
		l.Release(t.Context())
	})
}

func TestExtendByHand(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		for range 20 {
			time.Sleep(time.Second)
			must(t, l.Extend(t.Context(), 2*time.Second))
		}
		before := l.Deadline()
		err := l.Extend(t.Context(), time.Second)
		expect(t, err == nil && !l.Deadline().Before(before), "a shorter Extend: err %v, deadline moved by %s, want it left alone", err, l.Deadline().Sub(before))
		must(t, l.ExtendBy(t.Context(), time.Minute))
		by := l.Deadline().Sub(before)
		expect(t, by >= time.Minute && by <= time.Minute+2*time.Millisecond, "ExtendBy(1m) pushed the deadline out by %s", by)
		lock, _ := engine.Inspect(t.Context(), "a")
		expect(t, lock.Holders[0].ExpiresIn >= l.Remaining(), "expiry in %s is before the deadline in %s", lock.Holders[0].ExpiresIn, l.Remaining())
		n := engine.count("extend")
		expect(t, n == 22, "%d requests for 22 extends", n)
		<-l.Context().Done()
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
	})
}

func TestExtendErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		defer l.Release(t.Context())
		for _, ttl := range []time.Duration{0, -1, 9 * time.Millisecond, 31 * 24 * time.Hour} {
			wantErr(t, l.Extend(t.Context(), ttl), holdfast.ErrInvalid)
		}
		for _, d := range []time.Duration{0, -1, 31 * 24 * time.Hour} {
			wantErr(t, l.ExtendBy(t.Context(), d), holdfast.ErrInvalid)
		}
		before := l.Deadline()
		engine.set(nil, fail(errLink, "extend"))
		err := l.Extend(t.Context(), time.Hour)
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		wantErr(t, err, errLink)
		engine.set(fail(driver.ErrUnavailable, "extend"), nil)
		wantErr(t, l.Extend(t.Context(), time.Hour), holdfast.ErrUnavailable)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		engine.set(hang("extend"), nil)
		wantErr(t, l.Extend(ctx, time.Hour), holdfast.ErrOutcomeUnknown)
		expect(t, l.Deadline().Equal(before) && l.Valid(), "an unknown outcome moved the deadline")
		engine.heal()
	})
}

// TestValidAfterSuspension checks that Valid counts a suspension, by the boot-time clock.
func TestValidAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep time.Duration
		start := time.Now()
		c := newClient(t, mem.New(nil), nil)
		holdfast.SetBootClock(c, func() time.Duration { return time.Hour + time.Since(start) + asleep })
		l := mustAcquire(t, c, "a", nil)
		need(t, l.Valid(), "not valid at first")
		asleep = 26 * time.Second
		expect(t, l.Valid(), "not valid after a suspension of 26 s, with a TTL of 30 s")
		asleep = 31 * time.Second
		expect(t, !l.Valid(), "valid after a suspension of 31 s, with a TTL of 30 s")
		expect(t, l.Context().Err() != nil, "the first call of Valid after the suspension did not end the context")
	})
}

func TestLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		opts := &holdfast.AcquireOptions{TTL: 10 * time.Second, LockDelay: time.Minute, KeepAlive: holdfast.KeepAliveOff}
		l := mustAcquire(t, c, "a", opts)
		start := time.Now()
		<-l.Context().Done()
		took := time.Since(start)
		expect(t, took <= 10*time.Second, "trusted for %s, want less than the TTL of 10s", took)
		next, err := c.Acquire(t.Context(), "a", opts)
		must(t, err)
		took = time.Since(start)
		expect(t, took >= 70*time.Second, "the next holder came after %s, want 1m10s", took)
		next.Release(t.Context())
		mustAcquire(t, c, "a", nil).Release(t.Context()) // a release frees the name at once
	})
}

func TestRelease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ctx); err != nil {
			t.Errorf("under an ended context: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		expect(t, !l.Valid() && errors.Is(context.Cause(l.Context()), context.Canceled),
			"after the release: valid %v, cause %v", l.Valid(), context.Cause(l.Context()))
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
		n := engine.count("release")
		expect(t, n == 1, "%d release requests, want 1", n)
	})
}

func TestReleaseGoesOnInBackground(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		engine.set(fail(errLink, "release"), nil)
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		engine.heal()
		time.Sleep(2 * time.Second)
		expect(t, holders(t, engine.Engine, "a") == 0, "the lock is still held 2 s after the store came back")
	})
}

// TestReleaseWithLostReply checks that a release whose reply was lost is repeated without an error.
func TestReleaseWithLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.CleanupFailed || e.Kind == holdfast.Lost {
				failed = e.Err
			}
		}})
		l := mustAcquire(t, c, "a", nil)
		engine.set(nil, fail(errLink, "release"))
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		engine.heal()
		time.Sleep(time.Minute)
		expect(t, failed == nil, "the repeat was reported as %v", failed)
	})
}

func TestMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		time.Sleep(10 * time.Second)
		must(t, l.Release(t.Context()))
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", nil)), holdfast.ErrHeld)
		next, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		must(t, err)
		took := time.Since(start)
		expect(t, took >= time.Minute && took <= time.Minute+50*time.Millisecond, "acquired again after %s, want 1m", took)
		time.Sleep(2 * time.Minute)
		next.Release(t.Context())
		mustAcquire(t, c, "a", nil).Release(t.Context())
	})
}

// A granter grants everything and counts renewals. It holds more leases than a real store can in a
// short test.
type granter struct {
	*mem.Engine
	token, renewals atomic.Uint64

	server           chan struct{} // if not nil, has room for one request at a time, which takes 1 ms
	requests, queued atomic.Int64
	longest          atomic.Int64 // the greatest length of the queue
	down             atomic.Bool
}

func (g *granter) Acquire(context.Context, driver.AcquireRequest) (driver.AcquireReply, error) {
	return driver.AcquireReply{Outcome: driver.Granted, Token: g.token.Add(1)}, nil
}

func (g *granter) Extend(_ context.Context, reqs []driver.ExtendRequest) []error {
	g.renewals.Add(uint64(len(reqs)))
	errs := make([]error, len(reqs))
	if g.server != nil {
		g.requests.Add(1)
		if n := g.queued.Add(1); n > g.longest.Load() {
			g.longest.Store(n)
		}
		g.server <- struct{}{}
		time.Sleep(time.Millisecond)
		<-g.server
		g.queued.Add(-1)
	}
	if g.down.Load() {
		for i := range errs {
			errs[i] = driver.ErrUnavailable
		}
	}
	return errs
}

func (g *granter) Release(context.Context, driver.ReleaseRequest) error { return nil }

// TestPace checks that a lease is renewed every 5 s, or sooner if its TTL requires it. A client
// sends at most 200 renewals a second, unless the TTLs require more.
func TestPace(t *testing.T) {
	for _, tc := range []struct {
		leases      int
		ttl         time.Duration
		least, most float64 // renewals a second
	}{
		{1, 10 * time.Minute, 0.18, 0.21},
		{1, 15 * time.Second, 0.18, 0.22},
		{1, 6 * time.Second, 0.45, 0.55},
		{900, time.Minute, 170, 200},
		{1100, time.Minute, 170, 205},
		{3000, time.Minute, 170, 205},
		{3000, 30 * time.Second, 290, 330},       // every 10 s, a third of the TTL
		{20_000, 30 * time.Second, 1_950, 2_200}, // likewise
	} {
		runInBubble(t, fmt.Sprintf("%d of %s", tc.leases, tc.ttl), func(t *testing.T) {
			engine := &granter{Engine: mem.New(nil)}
			c := newClient(t, engine, &holdfast.Options{TTL: tc.ttl})
			for i := range tc.leases {
				mustAcquire(t, c, fmt.Sprint(i), nil)
				if i%10 == 0 {
					time.Sleep(100 * time.Second / time.Duration(tc.leases))
				}
			}
			const span = time.Minute
			synctest.Wait()
			before := engine.renewals.Load()
			time.Sleep(span)
			synctest.Wait()
			rate := float64(engine.renewals.Load()-before) / span.Seconds()
			if t.Logf("%.2f renewals a second", rate); rate < tc.least || rate > tc.most {
				t.Errorf("%.2f renewals a second, want %.2f to %.2f", rate, tc.least, tc.most)
			}
		})
	}
}

// TestKeepAliveTellsLongLeases checks that the client detects the loss of leases with a long TTL
// within 5 s.
func TestKeepAliveTellsLongLeases(t *testing.T) {
	for _, ttl := range []time.Duration{16 * time.Second, time.Minute, 10 * time.Minute} {
		inBubble(t, &holdfast.Options{TTL: ttl}, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", nil)
			extended := mustAcquire(t, c, "b", nil)
			must(t, extended.Extend(t.Context(), time.Hour))
			time.Sleep(ttl)
			engine.set(fail(driver.ErrUnavailable, "extend"), nil)
			time.Sleep(10 * time.Second) // a blip, with many renewals that fail
			engine.heal()
			takeAway(t, engine.Engine, "a")
			takeAway(t, engine.Engine, "b")
			start := time.Now()
			<-l.Context().Done()
			<-extended.Context().Done()
			took := time.Since(start)
			expect(t, took <= 5*time.Second, "TTL %s: notified after %s, want within 5s", ttl, took)
		})
	}
}

// TestManyRenewalsAreSpread checks that the renewals of many leases that become due together are
// spread out again, and do not form a long queue in the server. The batches are as full as possible
// nevertheless.
func TestManyRenewalsAreSpread(t *testing.T) {
	const leases, ttl = 5_000, 30 * time.Second
	for what, tc := range map[string]struct {
		taken   time.Duration // the time in which all are acquired
		outage  time.Duration // begins after a minute
		longest int64         // longest queue of requests
	}{
		"taken evenly":    {taken: ttl / 3, longest: 3},
		"taken at once":   {longest: 12},
		"after an outage": {taken: ttl / 3, outage: 2 * ttl / 5, longest: 12},
	} {
		runInBubble(t, what, func(t *testing.T) {
			engine := &granter{Engine: mem.New(nil), server: make(chan struct{}, 1)}
			c := newClient(t, engine, &holdfast.Options{TTL: ttl})
			all := make([]*holdfast.Lease, leases)
			for i := range all {
				all[i] = mustAcquire(t, c, fmt.Sprint(i), nil)
				time.Sleep(tc.taken / leases)
			}
			time.Sleep(time.Minute)
			engine.down.Store(tc.outage > 0)
			time.Sleep(tc.outage)
			engine.down.Store(false)
			time.Sleep(ttl / 2) // all have been renewed in a hurry
			engine.longest.Store(0)
			renewals, requests := engine.renewals.Load(), engine.requests.Load()
			time.Sleep(2 * time.Minute)
			renewals, requests = engine.renewals.Load()-renewals, engine.requests.Load()-requests
			for _, l := range all {
				need(t, l.Valid(), "%s is lost: %v", l.Name(), context.Cause(l.Context()))
			}
			each := float64(renewals) / float64(requests)
			t.Logf("requests of %.1f renewals, %d at once", each, engine.longest.Load())
			expect(t, each >= 0.95*driver.MaxBatch && engine.longest.Load() <= tc.longest,
				"requests of %.1f renewals, and %d at once; want about %d, and %d at most", each, engine.longest.Load(), driver.MaxBatch, tc.longest)
		})
	}
}

// TestLeasesAreOneThing checks that Leases is only as good as the worst of its leases.
func TestLeasesAreOneThing(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		key := "key of the caller"
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), &key, 7))
		ls, err := c.AcquireAll(ctx, []string{"a", "b"}, nil)
		must(t, err)
		cancel()
		synctest.Wait()
		expect(t, ls.Context().Err() == nil && ls.Valid(), "the leases ended with the context of the wait")
		must(t, ls.Lease("b").Extend(t.Context(), time.Hour))
		if a := ls.Lease("a"); !ls.Deadline().Equal(a.Deadline()) || ls.Remaining() != a.Remaining() {
			t.Errorf("deadline in %s, want that of a, the earlier, in %s", ls.Remaining(), a.Remaining())
		}
		expect(t, ls.Context().Value(&key) == 7, "the context does not carry the caller's values")
		l, _ := holdfast.LeaseFromContext(ls.Context())
		expect(t, l == ls.Lease("b"), "the context does not carry the leases")
		for _, ttl := range []time.Duration{0, time.Millisecond, 31 * 24 * time.Hour} {
			wantErr(t, ls.Extend(t.Context(), ttl), holdfast.ErrInvalid)
		}
		n := engine.count("extend")
		expect(t, n == 1, "%d requests, want none for bad TTLs", n)
		engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: ls.Lease("a").ID()}) // by an operator
		err = ls.Extend(t.Context(), time.Minute)
		if wantErr(t, err, holdfast.ErrLost); !strings.Contains(err.Error(), `extend "a"`) {
			t.Errorf("error %q, want it to name a", err)
		}
		<-ls.Context().Done()
		wantErr(t, context.Cause(ls.Context()), holdfast.ErrLost)
		expect(t, ls.Lease("b").Valid() && !ls.Valid() && ls.Remaining() == 0,
			"b valid: %t, all valid: %t for %s; want b only", ls.Lease("b").Valid(), ls.Valid(), ls.Remaining())
		wantErr(t, ls.Release(t.Context()), holdfast.ErrLost)
		nothingLeft(t, engine, "a", "b")
	})
}

// TestLeaseContextCostsNothingUnused checks that the context of a lease allocates nothing before a
// caller waits for its end, and that a derived context starts no goroutine.
func TestLeaseContextCostsNothingUnused(t *testing.T) {
	c := newClient(t, mem.New(nil), nil)
	var leases []*holdfast.Lease
	for i := range 101 { // AllocsPerRun runs the function 101 times
		leases = append(leases, mustAcquire(t, c, fmt.Sprint(i), nil))
	}
	l := leases[0]
	if n := testing.AllocsPerRun(100, func() {
		l, leases = leases[0], leases[1:]
		if held, ok := holdfast.LeaseFromContext(l.Context()); l.Context().Err() != nil || !ok || held != l {
			t.Errorf("%v, lease %v", l.Context().Err(), held)
		}
	}); n > 0 {
		t.Errorf("%.0f allocations, want 0", n)
	}
	before := runtime.NumGoroutine()
	var children []context.Context
	for range 100 {
		child, stop := context.WithCancel(context.WithValue(l.Context(), contexttest.Key, 1))
		defer stop()
		defer context.AfterFunc(child, func() {})()
		children = append(children, child)
	}
	if n := runtime.NumGoroutine() - before; n > 0 {
		t.Errorf("100 derived contexts run %d goroutines", n)
	}
	l.Release(t.Context())
	for _, child := range children {
		if held, _ := holdfast.LeaseFromContext(child); held != l || child.Err() == nil {
			t.Errorf("a derived context: lease %v, %v", held, child.Err())
		}
	}
}
