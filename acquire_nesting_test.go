package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// Whoever would wait for a lease of its own context is told so; what can only
// fail or succeed at once is tried. nil is a lease.
func TestNesting(t *testing.T) {
	exclusive := &holdfast.AcquireOptions{}
	deadlock, mismatch := holdfast.ErrDeadlock, holdfast.ErrKindMismatch
	tests := []struct {
		held      []*holdfast.AcquireOptions // outermost first
		want      *holdfast.AcquireOptions
		try, wait error
	}{
		{[]*holdfast.AcquireOptions{exclusive}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{exclusive}, shared, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{exclusive}, semaphore(3, 1), deadlock, deadlock},
		{[]*holdfast.AcquireOptions{shared}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{shared}, shared, nil, deadlock},
		{[]*holdfast.AcquireOptions{shared, shared}, shared, nil, deadlock},
		{[]*holdfast.AcquireOptions{shared}, semaphore(3, 1), mismatch, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, shared, mismatch, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 1), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 2), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 3), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 3)}, semaphore(3, 1), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1), semaphore(3, 1)}, semaphore(3, 1), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1), semaphore(3, 1)}, semaphore(3, 2), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(5, 1), mismatch, deadlock},
	}
	for _, tt := range tests {
		var held string
		for _, o := range tt.held {
			held += fmt.Sprint(o.Mode, ", ")
		}
		runInBubble(t, fmt.Sprint(held, "then ", tt.want.Mode), func(t *testing.T) {
			c := newClient(t, newFaulty(), nil)
			ctx := t.Context()
			for _, o := range tt.held {
				outer, err := c.TryAcquire(ctx, "a", o)
				if err != nil {
					t.Fatal(err)
				}
				between, err := c.TryAcquire(outer.Context(), fmt.Sprint("another ", outer.Token()), nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx = between.Context()
			}
			check := func(what string, l *holdfast.Lease, err, want error) {
				t.Helper()
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
				if l != nil {
					l.Release(t.Context())
				}
			}
			start := time.Now()
			l, err := c.TryAcquire(ctx, "a", tt.want)
			check("TryAcquire", l, err, tt.try)
			l, err = c.Acquire(ctx, "a", tt.want)
			check("Acquire", l, err, tt.wait)
			if took := time.Since(start); took != 0 {
				t.Errorf("took %s, want an answer at once", took)
			}
		})
	}
}

// A lease that is over is in nobody's way.
func TestNestingUnderLeasesThatAreOver(t *testing.T) {
	for _, mode := range []*holdfast.AcquireOptions{{}, shared, semaphore(1, 1)} {
		for _, lost := range []bool{false, true} {
			runInBubble(t, fmt.Sprint(mode.Mode, " lost ", lost), func(t *testing.T) {
				c := newClient(t, newFaulty(), nil)
				opts := *mode
				opts.MaxHold = time.Minute
				outer := mustAcquire(t, c, "a", &opts)
				values := context.WithoutCancel(outer.Context())
				if lost {
					time.Sleep(time.Minute + time.Second)
				} else {
					outer.Release(t.Context())
				}
				l, err := c.Acquire(values, "a", mode)
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.Acquire(l.Context(), "a", mode)
				wantErr(t, err, holdfast.ErrDeadlock)
				l.Release(t.Context())
			})
		}
	}
}

// The names of AcquireAll are nested in one another, and in the caller's.
func TestNestingOfAcquireAll(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		outer := mustAcquire(t, c, "b", nil)
		requests := len(engine.calls)
		for _, acquire := range []func(context.Context, []string, *holdfast.AcquireOptions) (*holdfast.Leases, error){
			c.AcquireAll, c.TryAcquireAll,
		} {
			_, err := acquire(outer.Context(), []string{"a", "b"}, nil)
			wantErr(t, err, holdfast.ErrDeadlock)
		}
		if len(engine.calls) != requests {
			t.Errorf("requests were sent: %v", engine.calls)
		}
		ls, err := c.AcquireAll(outer.Context(), []string{"x", "y", "z"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "x", "y", "z"} {
			_, err := c.TryAcquire(ls.Context(), name, nil)
			wantErr(t, err, holdfast.ErrDeadlock)
		}
		inner, err := c.Acquire(ls.Context(), "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		values := context.WithoutCancel(inner.Context())
		ls.Release(t.Context())
		again, err := c.AcquireAll(values, []string{"x", "y"}, nil)
		if err != nil {
			t.Errorf("after the release: %v", err)
		}
		again.Release(t.Context())
		inner.Release(t.Context())
		outer.Release(t.Context())
	})
}

// A downgraded lease counts as what it is now.
func TestNestingUnderDowngraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		outer := mustAcquire(t, c, "a", nil)
		if err := outer.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := c.TryAcquire(outer.Context(), "a", shared)
		if err != nil {
			t.Fatal(err)
		}
		l.Release(t.Context())
		_, err = c.Acquire(outer.Context(), "a", shared)
		wantErr(t, err, holdfast.ErrDeadlock)
		outer.Release(t.Context())
	})
}

// An engine that is a struct with a map in it cannot be compared.
func TestEngineThatCannotBeCompared(t *testing.T) {
	type byValue struct {
		driver.Engine
		_ map[string]int
	}
	engine := byValue{Engine: plain{newFaulty()}}
	c, other := newClient(t, engine, nil), newClient(t, engine, nil)
	l := mustAcquire(t, c, "a", nil)
	defer l.Release(t.Context())
	_, err := c.TryAcquire(l.Context(), "a", nil)
	wantErr(t, err, holdfast.ErrDeadlock)
	_, err = other.TryAcquire(l.Context(), "a", nil)
	wantErr(t, err, holdfast.ErrHeld)
}
