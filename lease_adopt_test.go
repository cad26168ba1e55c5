package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// left acquires a lease with its own client, leaves it, and returns its handle and the options to
// adopt it.
func left(t testing.TB, store *mem.Engine, opts *holdfast.AcquireOptions) (holdfast.Handle, *holdfast.AdoptOptions) {
	t.Helper()
	l := mustAcquire(t, newClient(t, newFaultyOn(store), &holdfast.Options{TTL: 10 * time.Second}), "a", opts)
	handle := mustLeave(t, l)
	need(t, l.Token() == tokenOf(t, handle), "%v of %v", handle, l)
	return handle, &holdfast.AdoptOptions{TTL: 10 * time.Second}
}

func mustLeave(t testing.TB, l *holdfast.Lease) holdfast.Handle {
	t.Helper()
	handle, err := l.Leave()
	must(t, err)
	return handle
}

func mustAdopt(t testing.TB, c *holdfast.Client, handle holdfast.Handle, opts *holdfast.AdoptOptions) *holdfast.Lease {
	t.Helper()
	l, err := c.Adopt(t.Context(), handle, opts)
	must(t, err)
	return l
}

// idOf returns the lease ID in the text of a handle, and tokenOf the token.
func idOf(t testing.TB, h holdfast.Handle) holdfast.LeaseID {
	return holdfast.LeaseID(textOf(t, h)[2])
}

func tokenOf(t testing.TB, h holdfast.Handle) uint64 {
	token, err := strconv.ParseUint(textOf(t, h)[3], 10, 64)
	must(t, err)
	return token
}

func textOf(t testing.TB, h holdfast.Handle) []string {
	t.Helper()
	text, err := h.MarshalText()
	must(t, err)
	return strings.Split(string(text), ".")
}

// TestAdopt checks that a lease that one process leaves is kept alive by another, with the same
// token, and released by it.
func TestAdopt(t *testing.T) {
	modes := map[string]*holdfast.AcquireOptions{"exclusive": nil, "shared": shared, "semaphore": semaphore(3, 2)}
	for mode, opts := range modes {
		runInBubble(t, mode, func(t *testing.T) {
			engine := newFaulty()
			handle, adopt := left(t, engine.Engine, opts)
			id, want := idOf(t, handle), opts
			if want == nil {
				want = &holdfast.AcquireOptions{}
			}
			var acquired atomic.Int32
			c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
				if e.Kind == holdfast.Acquired && e.LeaseID == id {
					acquired.Add(1)
				}
			}})
			time.Sleep(9 * time.Second)
			l := mustAdopt(t, c, handle, adopt)
			expect(t, l.Name() == "a" && l.ID() == id && l.Token() == tokenOf(t, handle) && l.Mode() == want.Mode, "adopted %v, want what was left", l)
			waiting := enqueue(t.Context(), c, "a", nil2exclusive(opts))
			trusted(t, engine, l, time.Second, 5*time.Minute)
			wantErr(t, l.Release(t.Context()), nil)
			granted(t, waiting).lease.Release(t.Context())
			expect(t, acquired.Load() == 1, "the Observer heard of %d acquired leases, want the one that was adopted", acquired.Load())
			nothingLeft(t, engine, "a")
			expect(t, engine.count("acquire") == 1, "%d acquires, want that of the waiter only", engine.count("acquire"))
		})
	}
}

// nil2exclusive returns options for a request that has to wait for a lease with opts.
func nil2exclusive(opts *holdfast.AcquireOptions) *holdfast.AcquireOptions {
	if opts != nil && opts.Mode.Limit() != 0 {
		return semaphore(opts.Mode.Limit(), opts.Mode.Limit())
	}
	return nil
}

// TestAdoptionCountsFromItsRequest checks that the deadline of an adopted lease counts from before
// a request of this client, however late the reply, and whichever repeat was answered.
// INVARIANT I3.
func TestAdoptionCountsFromItsRequest(t *testing.T) {
	lost := 0
	ways := map[string][2]func(context.Context, string) error{
		"request is slow": {delay(900 * time.Millisecond), nil},
		"reply is slow":   {nil, delay(900 * time.Millisecond)},
		"replies get lost": {delay(50 * time.Millisecond), func(context.Context, string) error {
			if lost++; lost <= 2 {
				time.Sleep(400 * time.Millisecond)
				return errLink
			}
			return nil
		}},
	}
	for way, hooks := range ways {
		runInBubble(t, way, func(t *testing.T) {
			engine := newFaulty()
			handle, opts := left(t, engine.Engine, nil)
			opts.TTL, opts.KeepAlive = 3*time.Second, holdfast.KeepAliveOff
			time.Sleep(9 * time.Second)
			engine.set(hooks[0], hooks[1])
			c := newClient(t, engine, nil)
			l := mustAdopt(t, c, handle, opts)
			engine.heal()
			if left := l.Remaining(); left > 2200*time.Millisecond && way != "replies get lost" {
				t.Errorf("trusted for %s after a request of 900ms, of 3s in all", left)
			}
			trusted(t, engine, l, 50*time.Millisecond, 4*time.Second)
			wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
			l.Release(t.Context())
		})
	}
}

// TestAdoptionAnsweredTooLate checks that a reply that arrives after the deadline is ignored.
func TestAdoptionAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		handle, opts := left(t, engine.Engine, nil)
		opts.TTL = 500 * time.Millisecond
		engine.set(nil, delay(600*time.Millisecond))
		wantErr(t, errOf(newClient(t, engine, nil).Adopt(t.Context(), handle, opts)), holdfast.ErrUnavailable)
		expect(t, holders(t, engine, "a") == 1, "the lease has ended by it")
	})
}

// TestAdoptOfWhatIsOver checks that Adopt of an ended lease returns why it ended.
func TestAdoptOfWhatIsOver(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, engine *mem.Engine, h *holdfast.Handle)
		want error
	}{
		"expired":  {func(*testing.T, *mem.Engine, *holdfast.Handle) { time.Sleep(11 * time.Second) }, holdfast.ErrLost},
		"released": {func(t *testing.T, e *mem.Engine, _ *holdfast.Handle) { takeAway(t, e, "a") }, holdfast.ErrLost},
		"never was": {func(t *testing.T, e *mem.Engine, h *holdfast.Handle) {
			takeAway(t, e, "a")
			*h = holdfast.NewHandle("a", lockinfo.NewLeaseID(), tokenOf(t, *h), holdfast.Exclusive)
		}, holdfast.ErrLost},
		"broken": {func(t *testing.T, e *mem.Engine, _ *holdfast.Handle) {
			must(t, errOf(newClient(t, newFaultyOn(e), nil).Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"})))
		}, holdfast.ErrBroken},
	}
	for how, test := range ends {
		runInBubble(t, how, func(t *testing.T) {
			engine := newFaulty()
			handle, opts := left(t, engine.Engine, nil)
			test.end(t, engine.Engine, &handle)
			l, err := newClient(t, engine, nil).Adopt(t.Context(), handle, opts)
			wantErr(t, err, holdfast.ErrLost)
			wantErr(t, err, test.want)
			expect(t, l == nil, "a lease %v came with the error", l)
			nothingLeft(t, engine, "a")
		})
	}
}

// TestAdoptUnanswered checks that a lease can be adopted later if the store does not answer.
func TestAdoptUnanswered(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(context.Context, string) error
		want          error
	}{
		"refuses":         {fail(driver.ErrUnavailable, "extend"), nil, holdfast.ErrUnavailable},
		"hangs":           {hang("extend"), nil, holdfast.ErrOutcomeUnknown},
		"replies are cut": {nil, fail(errLink, "extend"), holdfast.ErrOutcomeUnknown},
	} {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			handle, opts := left(t, engine.Engine, nil)
			engine.set(test.before, test.after)
			wantErr(t, errOf(c.Adopt(t.Context(), handle, opts)), test.want)
			engine.heal()
			mustAdopt(t, c, handle, opts).Release(t.Context())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		handle, opts := left(t, engine.Engine, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, errOf(newClient(t, engine, nil).Adopt(ctx, handle, opts)), context.Canceled)
		expect(t, engine.count("extend") == 0, "asked under a context that had ended")
	})
}

// TestAdoptRefusesBadInput checks that invalid arguments are refused without a request.
func TestAdoptRefusesBadInput(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	handle, good := left(t, engine.Engine, nil)
	id, token := idOf(t, handle), tokenOf(t, handle)
	own := mustAcquire(t, c, "own", nil)
	calls := fmt.Sprint(engine.calls)
	with := func(change func(o *holdfast.AdoptOptions)) *holdfast.AdoptOptions {
		o := *good
		change(&o)
		return &o
	}
	for what, args := range map[string]struct {
		handle holdfast.Handle
		opts   *holdfast.AdoptOptions
	}{
		"nothing":    {holdfast.Handle{}, good},
		"no options": {holdfast.Handle{}, nil},
		"name":       {holdfast.NewHandle("", id, token, holdfast.Exclusive), good},
		"lease ID":   {holdfast.NewHandle("a", "0123", token, holdfast.Exclusive), good},
		"no token":   {holdfast.NewHandle("a", id, 0, holdfast.Exclusive), good},
		"token":      {holdfast.NewHandle("a", id, driver.MaxToken+1, holdfast.Exclusive), good},
		"mode":       {holdfast.NewHandle("a", id, token, holdfast.Permits(3, 2)), good},
		"TTL":        {handle, with(func(o *holdfast.AdoptOptions) { o.TTL = time.Millisecond })},
		"stalled":    {handle, with(func(o *holdfast.AdoptOptions) { o.StallAfter, o.KeepAlive = time.Second, holdfast.KeepAliveOff })},
		"our own":    {holdfast.NewHandle("own", own.ID(), own.Token(), holdfast.Exclusive), nil},
	} {
		_, err := c.Adopt(t.Context(), args.handle, args.opts)
		expect(t, errors.Is(err, holdfast.ErrInvalid), "%s: %v, want ErrInvalid", what, err)
	}
	got := fmt.Sprint(engine.calls)
	expect(t, got == calls, "requests %s, and before that %s", got, calls)
	must(t, c.Close())
	wantErr(t, errOf(c.Adopt(t.Context(), handle, good)), holdfast.ErrClosed)
	expect(t, holders(t, engine, "a") == 1, "the lease that was not adopted has ended")
}

// TestAdoptDuringClose checks that a lease whose adoption fails because the client is being closed is
// still there.
func TestAdoptDuringClose(t *testing.T) {
	for range 500 {
		engine := newFaulty()
		handle, opts := left(t, engine.Engine, nil)
		c, closed := newClient(t, engine, nil), make(chan error, 1)
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "extend" {
				go func() { closed <- c.Close() }()
			}
			return nil
		})
		_, err := c.Adopt(t.Context(), handle, opts)
		must(t, <-closed)
		expect(t, !errors.Is(err, holdfast.ErrClosed) || holders(t, engine, "a") == 1, "Adopt returned %v, and the lease was released", err)
	}
}

// TestReleaseOfAdoptedMeetsZombies checks that a late acquire request of an adopted lease is not
// granted after its release. The client that adopts cannot know of such requests. INVARIANT I5.
func TestReleaseOfAdoptedMeetsZombies(t *testing.T) {
	engine := newFaulty()
	handle, opts := left(t, engine.Engine, nil)
	l := mustAdopt(t, newClient(t, engine, nil), handle, opts)
	must(t, l.Release(t.Context()))
	reply, err := engine.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: "a", LeaseID: idOf(t, handle), TTL: time.Minute})
	expect(t, err == nil && reply.Outcome == driver.Cancelled, "a copy of the acquire is answered %+v, %v; want Cancelled", reply, err)
}

// An obliging engine extends any lease, like a store that was restored with old data.
type obliging struct{ *faulty }

func (obliging) Extend(_ context.Context, reqs []driver.ExtendRequest) []error {
	return make([]error, len(reqs))
}

// TestAdoptedRivals checks that the earlier of two exclusive leases of a name ends, whichever of
// them was adopted.
func TestAdoptedRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, obliging{engine}, nil)
		mine := mustAcquire(t, c, "a", nil)
		wantErr(t, errOf(c.Adopt(t.Context(), holdfast.NewHandle("a", lockinfo.NewLeaseID(), mine.Token()-1, holdfast.Exclusive), nil)), holdfast.ErrLost)
		need(t, mine.Valid(), "the later lease has ended")
		later := mustAdopt(t, c, holdfast.NewHandle("a", lockinfo.NewLeaseID(), mine.Token()+1, holdfast.Exclusive), nil)
		overtaken(t, mine)
		expect(t, later.Valid(), "the adopted lease has ended")
	})
}

// TestAdoptedTerms checks that MaxHold, MinHold and StallAfter count from the adoption.
func TestAdoptedTerms(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		adopt := func(change func(o *holdfast.AdoptOptions)) *holdfast.Lease {
			handle, opts := left(t, engine.Engine, nil)
			time.Sleep(5 * time.Second)
			change(opts)
			return mustAdopt(t, c, handle, opts)
		}
		for _, test := range []struct {
			change func(o *holdfast.AdoptOptions)
			want   error
			least  time.Duration
		}{
			{func(o *holdfast.AdoptOptions) { o.MaxHold = time.Minute }, holdfast.ErrMaxHold, 59 * time.Second},
			{func(o *holdfast.AdoptOptions) { o.StallAfter = 20 * time.Second }, holdfast.ErrStalled, 20 * time.Second},
			{func(o *holdfast.AdoptOptions) { o.KeepAlive = holdfast.KeepAliveOff }, holdfast.ErrLost, 8 * time.Second},
		} {
			start := time.Now()
			l := adopt(test.change)
			<-l.Context().Done()
			took := time.Since(start) - 5*time.Second
			wantErr(t, context.Cause(l.Context()), test.want)
			expect(t, took >= test.least && took <= test.least+12*time.Second, "%v after %s, want %s or a little more", test.want, took, test.least)
			l.Release(t.Context())
			time.Sleep(15 * time.Second)
		}
		start := time.Now()
		l := adopt(func(o *holdfast.AdoptOptions) { o.MinHold = time.Minute })
		l.Release(t.Context())
		next, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		closed := time.Since(start) - 5*time.Second
		expect(t, closed >= time.Minute && closed <= 61*time.Second, "the name was closed for %s, want MinHold", closed)
		next.Release(t.Context())
	})
}

// TestAdoptTwiceAtOnce: of two calls that adopt one lease at the same time, one gets it. Otherwise
// the release of one would end the lease under the other.
func TestAdoptTwiceAtOnce(t *testing.T) {
	for _, mode := range []holdfast.Mode{holdfast.Exclusive, holdfast.Shared} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			handle := mustLeave(t, mustAcquire(t, c, "a", &holdfast.AcquireOptions{Mode: mode}))
			engine.set(delay(time.Second), nil)
			second := make(chan error)
			go func() {
				time.Sleep(time.Second / 2)
				_, err := c.Adopt(context.Background(), handle, nil)
				second <- err
			}()
			l := mustAdopt(t, c, handle, nil)
			wantErr(t, <-second, holdfast.ErrInvalid)
			must(t, l.Release(t.Context()))
		})
	}
}
