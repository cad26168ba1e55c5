package holdfast_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func TestTryAcquireTellsWhoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
		a := newClient(t, engine, &holdfast.Options{Holder: deploy})
		b := newClient(t, engine, nil)
		l := mustAcquire(t, a, "orders/42", &holdfast.AcquireOptions{TTL: 12 * time.Second, Reason: "resize"})
		defer l.Release(t.Context())
		time.Sleep(12 * time.Minute) // the lease is renewed meanwhile

		_, err := b.TryAcquire(t.Context(), "orders/42", nil)
		var held *holdfast.HeldError
		need(t, errors.As(err, &held) && errors.Is(err, holdfast.ErrHeld), "error = %v, want a *HeldError", err)
		want := `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m: "resize"`
		if err.Error() != want || held.Holder.Reason != "resize" || held.Since != 12*time.Minute || held.ExpiresIn > 12*time.Second ||
			held.Released || held.Foreign || held.Queue != 0 {
			t.Errorf("error = %q (%+v), want %q", err, held, want)
		}
	})
}

func TestAcquireWaitsForRelease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		first := mustAcquire(t, c, "a", nil)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { first.Release(context.Background()) })
		second, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		defer second.Release(t.Context())
		waited := time.Since(start)
		expect(t, waited == time.Minute, "acquired %s after the start, want at the release: 1m", waited)
		expect(t, second.Token() > first.Token(), "tokens %d, %d: want them to grow", first.Token(), second.Token())
		// I7: a waiter does not spin.
		n := engine.count("acquire")
		expect(t, n <= 40, "%d attempts in a minute: the waiter spins", n)
	})
}

func TestAcquireTakesOverAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		start := time.Now()
		l, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		defer l.Release(t.Context())
		took := time.Since(start)
		expect(t, took >= 10*time.Second && took <= 10*time.Second+50*time.Millisecond, "taken over after %s, want 10s to 10.05s", took)
	})
}

func TestAcquireWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		l := mustAcquire(t, c, "a", nil)
		defer l.Release(t.Context())
		start := time.Now()
		_, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MaxWait: 3 * time.Second})
		wantErr(t, err, holdfast.ErrHeld)
		expect(t, !errors.Is(err, context.DeadlineExceeded), "%v is a context error, but no context of the caller has ended", err)
		took := time.Since(start)
		expect(t, took == 3*time.Second, "gave up after %s, want 3s", took)
		expect(t, strings.Contains(err.Error(), "(waited 3s)"), "error %q does not say how long it waited", err)
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		l := mustAcquire(t, c, "a", nil)
		defer l.Release(t.Context())
		why := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := c.Acquire(ctx, "a", nil)
		wantErr(t, err, context.Canceled)
		wantErr(t, err, why)
		wantErr(t, err, holdfast.ErrHeld) // see also TestEndedWaitSaysWhoHolds
	})
}

// TestLeaseOutlivesContextOfAcquire checks that the lease does not end with the context of Acquire.
// In other libraries a held lock is lost when the time limit of the wait passes.
func TestLeaseOutlivesContextOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l, err := c.Acquire(ctx, "a", nil)
		must(t, err)
		time.Sleep(5 * time.Minute)
		expect(t, l.Valid() && l.Context().Err() == nil, "the lease has ended: %v", context.Cause(l.Context()))
		if err := l.Release(ctx); err != nil {
			t.Errorf("Release under an ended context: %v", err)
		}
	})
}

func TestMinToken(t *testing.T) {
	c := newClient(t, mem.New(nil), nil)
	seen := uint64(time.Now().Add(time.Minute).UnixMicro())
	l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinToken: seen})
	defer l.Release(t.Context())
	expect(t, l.Token() == seen+1, "token %d, want %d", l.Token(), seen+1)
	wantErr(t, errOf(c.TryAcquire(t.Context(), "b", &holdfast.AcquireOptions{MinToken: seen + 2*3600e6})), holdfast.ErrInvalid)
}

func TestBadInputChangesNothing(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, plain{engine}, nil)
	day := 24 * time.Hour
	tests := map[string]struct {
		name string
		opts holdfast.AcquireOptions
		want error
	}{
		"empty name":          {name: ""},
		"long name":           {name: strings.Repeat("x", 513)},
		"control character":   {name: "a\nb"},
		"C1 control":          {name: "a\u009b2J"},
		"turned around":       {name: "a\u202egnp"},
		"isolated":            {name: "a\u2067b"},
		"not UTF-8":           {name: "a\xff"},
		"TTL negative":        {name: "a", opts: holdfast.AcquireOptions{TTL: -1}},
		"TTL under 10 ms":     {name: "a", opts: holdfast.AcquireOptions{TTL: 9 * time.Millisecond}},
		"TTL over 30 days":    {name: "a", opts: holdfast.AcquireOptions{TTL: 30*day + 1}},
		"Wait negative":       {name: "a", opts: holdfast.AcquireOptions{MaxWait: -1}},
		"MinHold negative":    {name: "a", opts: holdfast.AcquireOptions{MinHold: -1}},
		"MaxHold too short":   {name: "a", opts: holdfast.AcquireOptions{MaxHold: 1}},
		"MinHold > MaxHold":   {name: "a", opts: holdfast.AcquireOptions{MinHold: time.Hour, MaxHold: time.Minute}},
		"StallAfter negative": {name: "a", opts: holdfast.AcquireOptions{StallAfter: -1}},
		"StallAfter by hand":  {name: "a", opts: holdfast.AcquireOptions{StallAfter: time.Second, KeepAlive: holdfast.KeepAliveOff}},
		"LockDelay negative":  {name: "a", opts: holdfast.AcquireOptions{LockDelay: -1}},
		"TTL + LockDelay":     {name: "a", opts: holdfast.AcquireOptions{TTL: 20 * day, LockDelay: 20 * day}},
		"KeepAlive unknown":   {name: "a", opts: holdfast.AcquireOptions{KeepAlive: 7}},
		"MinToken at the end": {name: "a", opts: holdfast.AcquireOptions{MinToken: driver.MaxToken}},
		"Mode unknown":        {name: "a", opts: holdfast.AcquireOptions{Mode: 9}},
		"Permits > Limit":     {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Permits(3, 2)}},
		"Permits negative":    {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Permits(-1, 2)}},
		"Limit too great":     {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Permits(1, lockinfo.MaxLimit+1)}},
		"Semaphore of 0":      {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Permits(1, 0)}},
		"reason too long":     {name: "a", opts: holdfast.AcquireOptions{Reason: strings.Repeat("x", 5000)}},
		"reason with escape":  {name: "a", opts: holdfast.AcquireOptions{Reason: "\x1b[2J"}},
		"reason turned round": {name: "a", opts: holdfast.AcquireOptions{Reason: "\u202egnp"}},
		"label not UTF-8":     {name: "a", opts: holdfast.AcquireOptions{Labels: map[string]string{"k": "\xff"}}},
		"shared":              {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Shared}, want: holdfast.ErrUnsupported},
		"semaphore":           {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Permits(1, 3)}, want: holdfast.ErrUnsupported},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == nil {
				want = holdfast.ErrInvalid
			}
			for _, acquire := range []func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error){c.Acquire, c.TryAcquire} {
				wantErr(t, errOf(acquire(t.Context(), tt.name, &tt.opts)), want)
			}
		})
	}
	n := engine.count("acquire")
	expect(t, n == 0, "%d requests were sent", n)
	for _, o := range []holdfast.Options{{TTL: -1}, {TTL: time.Millisecond}, {TTL: 31 * day}, {RequestTimeout: -1}} {
		wantErr(t, errOf(holdfast.New(engine, &o)), holdfast.ErrInvalid)
	}
}

// A waitForm is one of the calls that can wait for a lock. It releases the lock that it gets.
type waitForm func(ctx context.Context, c *holdfast.Client, wait time.Duration) error

// waitForms are all calls that can wait. They acquire "a", or "a" and "b".
var waitForms = map[string]waitForm{
	"Acquire": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		l, err := c.Acquire(ctx, "a", &holdfast.AcquireOptions{MaxWait: wait})
		if err == nil {
			err = l.Release(context.WithoutCancel(ctx))
		}
		return err
	},
	"Do": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		return c.Do(ctx, "a", &holdfast.AcquireOptions{MaxWait: wait}, func(context.Context, *holdfast.Lease) error { return nil })
	},
	"AcquireAll": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		ls, err := c.AcquireAll(ctx, []string{"b", "a"}, &holdfast.AcquireOptions{MaxWait: wait, KeepAlive: holdfast.KeepAliveOff})
		if err == nil {
			err = ls.Release(context.WithoutCancel(ctx))
		}
		return err
	},
	"Once": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		_, err := c.Once(ctx, "a", &holdfast.OnceOptions{Await: cmp.Or(wait, holdfast.Forever)}, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
		_, _ = c.Records().Forget(context.WithoutCancel(ctx), "a")
		return err
	},
	"OnceBegin": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		run, err := c.OnceBegin(ctx, "a", &holdfast.OnceOptions{Await: cmp.Or(wait, holdfast.Forever)})
		if err == nil {
			err = run.Fail(context.WithoutCancel(ctx))
		}
		return err
	},
}

// waitEngines are the kinds of engines on which waits differ.
var waitEngines = map[string]func(*faulty) driver.Engine{
	"queue":    func(f *faulty) driver.Engine { return f },
	"no queue": func(f *faulty) driver.Engine { return unqueued(f) },
	"one by one": func(f *faulty) driver.Engine {
		return driver.Forward{Engine: f, Without: driver.Capabilities{AcquireAll: true}}
	},
	"split":                func(f *faulty) driver.Engine { return split{f} },
	"no queue, one by one": func(f *faulty) driver.Engine { return unqueued(oneByOne(f)) },
}

// eachWait runs test with each form on each kind of engine.
func eachWait(t *testing.T, test func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm)) {
	for kind, as := range waitEngines {
		for form, call := range waitForms {
			runInBubble(t, form+", "+kind, func(t *testing.T) {
				f := newFaulty()
				test(t, f, newClient(t, as(f), &holdfast.Options{RequestTimeout: 5 * time.Second}), form, call)
			})
		}
	}
}

// TestShortestWait checks that one attempt has the request timeout even with the shortest MaxWait:
// the call acquires a free lock, reports the holder of a held one, and sends one request to a
// silent store.
func TestShortestWait(t *testing.T) {
	eachWait(t, func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm) {
		f.set(delay(50*time.Millisecond), nil)
		for _, wait := range []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond} {
			if err := call(t.Context(), c, wait); err != nil {
				t.Errorf("free, Wait %s: %v", wait, err)
			}
		}
		want := holdfast.ErrHeld
		if form == "Once" || form == "OnceBegin" {
			want = holdfast.ErrInProgress
		}
		release := foreign(t, f, "a", time.Hour)
		err := call(t.Context(), c, time.Microsecond)
		if wantErr(t, err, want); errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("held: %v", err)
		}
		release()

		f.set(hang("acquire", "acquire-all"), nil)
		for wait, want := range map[time.Duration]time.Duration{time.Microsecond: 5 * time.Second, 7 * time.Second: 7 * time.Second} {
			start, before := time.Now(), f.count("acquire")+f.count("acquire-all")
			wantErr(t, call(t.Context(), c, wait), holdfast.ErrUnavailable)
			if n := f.count("acquire") + f.count("acquire-all") - before; wait < time.Second && n != 1 {
				t.Errorf("%d requests, want one", n)
			}
			took := time.Since(start)
			expect(t, took == want, "a silent store was waited for %s, want the request timeout, once, or MaxWait: %s", took, want)
		}
		f.heal()
		time.Sleep(time.Minute)
		nothingLeft(t, f, "a", "b")
	})
}

// TestLateNamesHaveAnAttempt checks that AcquireAll makes one attempt for the last name even if the
// wait for the first has taken almost all of MaxWait.
func TestLateNamesHaveAnAttempt(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, f *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		f.set(delay(10*time.Millisecond), nil)
		for last, want := range map[string]error{"free": nil, "held": holdfast.ErrHeld} {
			release, releaseLast := foreign(t, f, "a", time.Hour), func() {}
			if last == "held" {
				releaseLast = foreign(t, f, "b", time.Hour)
			}
			time.AfterFunc(time.Minute-time.Millisecond, release)
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, &holdfast.AcquireOptions{MaxWait: time.Minute})
			if wantErr(t, err, want); err == nil {
				ls.Release(t.Context())
			}
			releaseLast()
			synctest.Wait()
			time.Sleep(time.Minute)
			nothingLeft(t, f, "a", "b")
		}
	})
}

// A spender reports the first spend lease IDs as spent. It records them and the cancelled lease
// IDs.
type spender struct {
	*mem.Engine
	spend int
	spent []lockinfo.LeaseID

	mu        sync.Mutex // guards the rest
	cancelled map[lockinfo.LeaseID]bool
}

func (s *spender) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if len(s.spent) < s.spend {
		s.spent = append(s.spent, req.LeaseID)
		return driver.AcquireReply{Outcome: driver.Spent}, nil
	}
	return s.Engine.Acquire(ctx, req)
}

func (s *spender) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if req.Cancel {
		s.mu.Lock()
		s.cancelled[req.LeaseID] = true
		s.mu.Unlock()
	}
	return s.Engine.Release(ctx, req)
}

// TestSpentLeaseIDIsReplaced checks that the client cancels a lease ID that the engine reports as
// spent and retries at once with another, but not forever.
func TestSpentLeaseIDIsReplaced(t *testing.T) {
	for _, test := range []struct {
		spend int
		try   bool
		want  error
		most  time.Duration
	}{
		{1, true, nil, 0},
		{1, false, nil, 0},
		{2, true, holdfast.ErrUnavailable, 0},
		{6, false, nil, time.Second},
		{1 << 20, false, holdfast.ErrUnavailable, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := &spender{Engine: mem.New(nil), spend: test.spend, cancelled: map[lockinfo.LeaseID]bool{}}
			c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
			must(t, err)
			acquire := c.Acquire
			if test.try {
				acquire = c.TryAcquire
			}
			start := time.Now()
			lease, err := acquire(t.Context(), "a", nil)
			took := time.Since(start)
			expect(t, errors.Is(err, test.want) && took <= test.most, "%d spent: %v after %s, want %v within %s", test.spend, err, took, test.want, test.most)
			synctest.Wait()
			seen := map[lockinfo.LeaseID]bool{}
			for _, id := range engine.spent {
				expect(t, !seen[id] && engine.cancelled[id], "lease ID %s: asked for again %t, cancelled %t", id, seen[id], engine.cancelled[id])
				seen[id] = true
			}
			if lease != nil {
				wantErr(t, lease.Release(t.Context()), nil)
			}
			wantErr(t, c.Close(), nil)
		})
	}
}

type acquireFunc = func(*holdfast.Client, context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error)

// acquires are the two ways to acquire one lock.
var acquires = map[string]acquireFunc{
	"TryAcquire": (*holdfast.Client).TryAcquire,
	"Acquire":    (*holdfast.Client).Acquire,
}

// TestTryAcquireDoesNotBarge checks that TryAcquire requests no place, and does not overtake the
// waiters in the queue.
func TestTryAcquireDoesNotBarge(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", semaphore(3, 2))
		waiting := enqueue(t.Context(), c, "a", semaphore(3, 3))
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", semaphore(3, 1))), holdfast.ErrHeld) // one permit is free
		lock, _ := engine.Inspect(t.Context(), "a")
		expect(t, len(lock.Queue) == 1 && lock.Queue[0].Mode == holdfast.Permits(3, 3), "queue = %+v, want the waiter only", lock.Queue)
		l.Release(t.Context())
		granted(t, waiting).lease.Release(t.Context())
	})
}
