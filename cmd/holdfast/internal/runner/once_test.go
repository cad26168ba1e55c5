//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// newOnce returns a once whose key another client holds for three seconds.
func newOnce(t *testing.T, extend func(*memlock.Engine, driver.ExtendRequest) error) *once {
	t.Helper()
	inner := memlock.New()
	client := newClient(t, &faulty{inner, func(req driver.ExtendRequest) error { return extend(inner, req) }})
	first, err := newClient(t, inner).TryAcquire(t.Context(), "job", nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Second, func() { _ = first.Release(t.Context()) }) // never fails in memory
	o := &once{working: make(chan struct{})}
	o.Client, o.Name, o.Opts.TTL, o.Await = client, "job", ttl, true
	return o
}

// TestOnceConfirms checks that no command is started under a lease that was
// handed over before it has its whole TTL.
func TestOnceConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		o := newOnce(t, func(*memlock.Engine, driver.ExtendRequest) error {
			if requests.Add(1) <= 3 {
				return driver.ErrUnavailable
			}
			return nil
		})
		go func() { <-o.working }() // begin waits for it
		opts := &holdfast.OnceOptions{TTL: ttl, Await: true}
		_, err := o.Client.Once(t.Context(), "job", opts, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			err := o.begin(ctx, l)
			if left := l.Remaining(); left < ttl*9/10 {
				t.Errorf("the command would start with %s left", left)
			}
			return nil, err
		})
		if err != nil || requests.Load() <= 3 {
			t.Errorf("%v after %d requests", err, requests.Load())
		}
	})
}

// TestOnceWaitsAgain checks that a lease which is lost before the command was
// started is no end, and that waiting again counts towards -w.
func TestOnceWaitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := newOnce(t, func(engine *memlock.Engine, req driver.ExtendRequest) error {
			// The lease goes to somebody else.
			if err := engine.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
				return err
			}
			_, err := engine.Acquire(t.Context(), driver.AcquireRequest{Name: req.Name, LeaseID: driver.NewLeaseID(), TTL: time.Hour})
			return err
		})
		o.Opts.Wait = 10 * time.Second
		_, err := o.take(t.Context())
		if took := time.Since(began); !errors.Is(err, holdfast.ErrInProgress) || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestOnceBeginsNothingAfterASignal checks that a signal which came before the
// work took over the signals keeps the command from being started.
func TestOnceBeginsNothingAfterASignal(t *testing.T) {
	o := &once{working: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.begin(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the command would start: %v", err)
	}
}

// TestOnceVerdict checks the status of a command that has ended, by what became
// of its record. INVARIANT I4: one that the store refuses is a loss.
func TestOnceVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"recorded":               {nil, 0},
		"refused by the store":   {fmt.Errorf("once %q: %w", "job", holdfast.ErrLost), exit.Lost},
		"the command failed":     {&exit.Error{Status: 3}, 3},
		"failed, and was a loss": {errors.Join(holdfast.ErrLost, &exit.Error{Status: 3}), exit.Lost},
		"the store is silent":    {holdfast.ErrOutcomeUnknown, exit.Unavailable},
	} {
		o := &once{ran: true}
		o.Name = "job"
		got := 0
		var e *exit.Error
		if err := o.verdict(c.err); errors.As(err, &e) {
			got = e.Status
		} else if err != nil {
			t.Errorf("%s: %v is no exit", name, err)
		}
		if got != c.status {
			t.Errorf("%s: status %d, want %d", name, got, c.status)
		}
	}
}
