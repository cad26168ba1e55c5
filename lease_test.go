package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(delay(time.Second), delay(2*time.Second))
		c := newClient(t, engine, nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second})
		want := start.Add(10*time.Second - 100*time.Millisecond - 2*time.Millisecond)
		if !l.Deadline().Equal(want) {
			t.Errorf("deadline %s after the request was sent, want 9.898s", l.Deadline().Sub(start))
		}
		if r := l.Remaining(); r != time.Until(want) {
			t.Errorf("remaining %s, want %s", r, time.Until(want))
		}
		l.Release(t.Context())
	})
}

func TestExtendByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		for range 20 {
			time.Sleep(time.Second)
			if err := l.Extend(t.Context(), 2*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		before := l.Deadline()
		if err := l.Extend(t.Context(), time.Second); err != nil || l.Deadline().Before(before) {
			t.Errorf("a shorter Extend: err %v, deadline moved by %s, want it left alone", err, l.Deadline().Sub(before))
		}
		if err := l.ExtendBy(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if by := l.Deadline().Sub(before); by < time.Minute || by > time.Minute+2*time.Millisecond {
			t.Errorf("ExtendBy(1m) pushed the deadline out by %s", by)
		}
		lock, _ := engine.Inspect(t.Context(), "a")
		if lock.Holders[0].ExpiresIn < l.Remaining() {
			t.Errorf("expiry in %s is before the deadline in %s", lock.Holders[0].ExpiresIn, l.Remaining())
		}
		if n := engine.count("extend"); n != 22 {
			t.Errorf("%d requests for 22 extends", n)
		}
		<-l.Context().Done()
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
	})
}

func TestExtendErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
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
		if !l.Deadline().Equal(before) || !l.Valid() {
			t.Error("an unknown outcome moved the deadline")
		}
		engine.heal()
	})
}

// A suspended machine's monotonic clock stood still; the boot-time clock did
// not.
func TestValidAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep time.Duration
		start := time.Now()
		c := newClient(t, memlock.New(), nil)
		holdfast.SetBootClock(c, func() time.Duration { return time.Hour + time.Since(start) + asleep })
		l := mustAcquire(t, c, "a", nil)
		if !l.Valid() {
			t.Fatal("not valid at first")
		}
		asleep = 29 * time.Second
		if !l.Valid() {
			t.Error("not valid after a suspension of 29 s, with a TTL of 30 s")
		}
		asleep = 31 * time.Second
		if l.Valid() {
			t.Error("valid after a suspension of 31 s, with a TTL of 30 s")
		}
		if l.Context().Err() == nil {
			t.Error("the first call of Valid after the suspension did not end the context")
		}
	})
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("a live lease: %v", err)
		}
		engine.set(fail(errLink, "extend"), nil)
		err := l.Verify(t.Context())
		wantErr(t, err, holdfast.ErrUnavailable)
		if !l.Valid() {
			t.Error("a failure to ask ended the lease")
		}
		engine.heal()
		engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
	})
}

func TestLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		opts := &holdfast.AcquireOptions{TTL: 10 * time.Second, LockDelay: time.Minute, KeepAlive: holdfast.KeepAliveOff}
		l := mustAcquire(t, c, "a", opts)
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("trusted for %s, want less than the TTL of 10s", took)
		}
		next, err := c.Acquire(t.Context(), "a", opts)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 70*time.Second {
			t.Errorf("the next holder came after %s, want 1m10s", took)
		}
		next.Release(t.Context())
		mustAcquire(t, c, "a", nil).Release(t.Context()) // a release frees at once
	})
}

func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ctx); err != nil {
			t.Errorf("under an ended context: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if l.Valid() || !errors.Is(context.Cause(l.Context()), context.Canceled) {
			t.Errorf("after the release: valid %v, cause %v", l.Valid(), context.Cause(l.Context()))
		}
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
		if n := engine.count("release"); n != 1 {
			t.Errorf("%d release requests, want 1", n)
		}
	})
}

func TestReleaseGoesOnInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		engine.set(fail(errLink, "release"), nil)
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		engine.heal()
		time.Sleep(2 * time.Second)
		if holders(t, engine.Engine, "a") != 0 {
			t.Error("the lock is still held 2 s after the store came back")
		}
	})
}

// A release that lost its reply, repeated, is not an error.
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
		if failed != nil {
			t.Errorf("the repeat was reported as %v", failed)
		}
	})
}

func TestMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		time.Sleep(10 * time.Second)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrHeld)
		next, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Minute || took > time.Minute+50*time.Millisecond {
			t.Errorf("acquired again after %s, want 1m", took)
		}
		time.Sleep(2 * time.Minute)
		next.Release(t.Context())
		mustAcquire(t, c, "a", nil).Release(t.Context())
	})
}
