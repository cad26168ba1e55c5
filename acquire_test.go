package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

func TestTryAcquireTellsWhoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
		a := newClient(t, engine, &holdfast.Options{Holder: deploy})
		b := newClient(t, engine, nil)
		l := mustAcquire(t, a, "orders/42", &holdfast.AcquireOptions{TTL: 12 * time.Second, Reason: "resize"})
		defer l.Release(t.Context())
		time.Sleep(12 * time.Minute) // it is renewed all the time

		_, err := b.TryAcquire(t.Context(), "orders/42", nil)
		var held *holdfast.HeldError
		if !errors.As(err, &held) || !errors.Is(err, holdfast.ErrHeld) {
			t.Fatalf("error = %v, want a *HeldError", err)
		}
		want := `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m: "resize"`
		if err.Error() != want || held.Holder.Reason != "resize" || held.Since != 12*time.Minute || held.ExpiresIn > 12*time.Second ||
			held.Released || held.Foreign || held.Queue != 0 {
			t.Errorf("error = %q (%+v), want %q", err, held, want)
		}
	})
}

func TestAcquireWaitsForRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		first := mustAcquire(t, c, "a", nil)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { first.Release(context.Background()) })
		second, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Release(t.Context())
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("acquired %s after the start, want at the release: 1m", waited)
		}
		if second.Token() <= first.Token() {
			t.Errorf("tokens %d, %d: want them to grow", first.Token(), second.Token())
		}
		// I7: a waiter looks twice to begin with and then once per refresh.
		if n := engine.count("acquire"); n > 40 {
			t.Errorf("%d attempts in a minute: the waiter spins", n)
		}
	})
}

func TestAcquireTakesOverAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		start := time.Now()
		l, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+50*time.Millisecond {
			t.Errorf("taken over after %s, want 10s to 10.05s", took)
		}
	})
}

func TestAcquireWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		l := mustAcquire(t, c, "a", nil)
		defer l.Release(t.Context())
		start := time.Now()
		_, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{Wait: 3 * time.Second})
		wantErr(t, err, holdfast.ErrHeld)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a context error, but no context of the caller has ended", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("gave up after %s, want 3s", took)
		}
		if !strings.Contains(err.Error(), "(waited 3s)") {
			t.Errorf("error %q does not say how long it waited", err)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		l := mustAcquire(t, c, "a", nil)
		defer l.Release(t.Context())
		why := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := c.Acquire(ctx, "a", nil)
		wantErr(t, err, context.Canceled)
		wantErr(t, err, why)
		wantErr(t, err, holdfast.ErrHeld) // TestEndedWaitSaysWhoHolds has the rest
	})
}

// The context of the wait is not the life of the lease: other libraries let a
// held lock die when the time limit of the wait passes.
func TestLeaseOutlivesContextOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l, err := c.Acquire(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if !l.Valid() || l.Context().Err() != nil {
			t.Errorf("the lease is over: %v", context.Cause(l.Context()))
		}
		if err := l.Release(ctx); err != nil {
			t.Errorf("Release under an ended context: %v", err)
		}
	})
}

func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		outer := mustAcquire(t, c, "a", nil)
		inner, err := c.Acquire(outer.Context(), "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range []*holdfast.Client{c, other} {
			_, err = client.Acquire(inner.Context(), "a", nil)
			wantErr(t, err, holdfast.ErrDeadlock)
			_, err = client.TryAcquire(inner.Context(), "b", nil)
			wantErr(t, err, holdfast.ErrDeadlock)
		}
		elsewhere := newClient(t, memlock.New(), nil)
		if l, err := elsewhere.TryAcquire(inner.Context(), "a", nil); err != nil {
			t.Errorf("the same name in another store: %v", err)
		} else {
			l.Release(t.Context())
		}
		values := context.WithoutCancel(inner.Context())
		inner.Release(t.Context())
		outer.Release(t.Context())
		l, err := c.Acquire(values, "a", nil)
		if err != nil {
			t.Fatalf("after the release: %v", err)
		}
		l.Release(t.Context())
	})
}

func TestMinToken(t *testing.T) {
	c := newClient(t, memlock.New(), nil)
	seen := uint64(time.Now().Add(time.Minute).UnixMicro())
	l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinToken: seen})
	defer l.Release(t.Context())
	if l.Token() != seen+1 {
		t.Errorf("token %d, want %d", l.Token(), seen+1)
	}
	_, err := c.TryAcquire(t.Context(), "b", &holdfast.AcquireOptions{MinToken: seen + 2*3600e6})
	wantErr(t, err, holdfast.ErrInvalid)
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
		"Wait negative":       {name: "a", opts: holdfast.AcquireOptions{Wait: -1}},
		"MinHold negative":    {name: "a", opts: holdfast.AcquireOptions{MinHold: -1}},
		"MaxHold too short":   {name: "a", opts: holdfast.AcquireOptions{MaxHold: 1}},
		"MinHold > MaxHold":   {name: "a", opts: holdfast.AcquireOptions{MinHold: time.Hour, MaxHold: time.Minute}},
		"Progress negative":   {name: "a", opts: holdfast.AcquireOptions{Progress: -1}},
		"Progress by hand":    {name: "a", opts: holdfast.AcquireOptions{Progress: time.Second, KeepAlive: holdfast.KeepAliveOff}},
		"LockDelay negative":  {name: "a", opts: holdfast.AcquireOptions{LockDelay: -1}},
		"TTL + LockDelay":     {name: "a", opts: holdfast.AcquireOptions{TTL: 20 * day, LockDelay: 20 * day}},
		"KeepAlive unknown":   {name: "a", opts: holdfast.AcquireOptions{KeepAlive: 7}},
		"MinToken at the end": {name: "a", opts: holdfast.AcquireOptions{MinToken: driver.MaxToken}},
		"Mode unknown":        {name: "a", opts: holdfast.AcquireOptions{Mode: 9}},
		"Limit of exclusive":  {name: "a", opts: holdfast.AcquireOptions{Limit: 2}},
		"Permits of shared":   {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Shared, Permits: 1}},
		"Permits > Limit":     {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: 2, Permits: 3}},
		"Permits negative":    {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: 2, Permits: -1}},
		"Limit too great":     {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: driver.MaxLimit + 1}},
		"Semaphore of 0":      {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Semaphore}},
		"reason too long":     {name: "a", opts: holdfast.AcquireOptions{Reason: strings.Repeat("x", 5000)}},
		"reason with escape":  {name: "a", opts: holdfast.AcquireOptions{Reason: "\x1b[2J"}},
		"reason turned round": {name: "a", opts: holdfast.AcquireOptions{Reason: "\u202egnp"}},
		"label not UTF-8":     {name: "a", opts: holdfast.AcquireOptions{Labels: map[string]string{"k": "\xff"}}},
		"shared":              {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Shared}, want: holdfast.ErrUnsupported},
		"semaphore":           {name: "a", opts: holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: 3}, want: holdfast.ErrUnsupported},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == nil {
				want = holdfast.ErrInvalid
			}
			for _, acquire := range []func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error){c.Acquire, c.TryAcquire} {
				_, err := acquire(t.Context(), tt.name, &tt.opts)
				wantErr(t, err, want)
			}
		})
	}
	if n := engine.count("acquire"); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	for _, o := range []holdfast.Options{{TTL: -1}, {TTL: time.Millisecond}, {TTL: 31 * day}, {RequestTimeout: -1}} {
		_, err := holdfast.New(engine, &o)
		wantErr(t, err, holdfast.ErrInvalid)
	}
}
