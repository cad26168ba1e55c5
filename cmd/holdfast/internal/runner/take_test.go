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
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

const ttl = 30 * time.Second

// A faulty is an engine whose answers to Extend a test decides.
type faulty struct {
	*memlock.Engine
	extend func(driver.ExtendRequest) error // nil or an error; the request reaches the engine after nil
}

func (f *faulty) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	for i, req := range reqs {
		if errs[i] = f.extend(req); errs[i] == nil {
			errs[i] = f.Engine.Extend(ctx, reqs[i:i+1])[0]
		}
	}
	return errs
}

// handOver has another client hold the lock for three seconds while j takes
// it, and returns what take returned, and how long after the hand-over.
func handOver(t *testing.T, extend func(*memlock.Engine, driver.ExtendRequest) error, wait time.Duration) (*holdfast.Lease, time.Duration, error) {
	t.Helper()
	inner := memlock.New()
	client := newClient(t, &faulty{inner, func(req driver.ExtendRequest) error { return extend(inner, req) }})
	first, err := newClient(t, inner).TryAcquire(t.Context(), "job", nil)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan time.Time, 1)
	time.AfterFunc(3*time.Second, func() {
		released <- time.Now()
		_ = first.Release(t.Context()) // never fails in memory
	})
	j := Job{Client: client, Name: "job", Opts: holdfast.AcquireOptions{TTL: ttl, Wait: wait}, Warn: t.Logf}
	lease, err := j.take(t.Context())
	return lease, time.Since(<-released), err
}

func newClient(t *testing.T, engine driver.Engine) *holdfast.Client {
	t.Helper()
	c, err := holdfast.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // never fails in memory
	return c
}

// TestTakeConfirms checks that a lease which was handed over is not used
// before it has its whole TTL, however often that must be asked for.
func TestTakeConfirms(t *testing.T) {
	for _, failure := range []error{driver.ErrUnavailable, errors.New("no answer")} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int32 // the keep-alive asks as well
			lease, took, err := handOver(t, func(*memlock.Engine, driver.ExtendRequest) error {
				if requests.Add(1) <= 3 {
					return failure
				}
				return nil
			}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if left := lease.Remaining(); left < ttl*9/10 {
				t.Errorf("the command would start with %s left", left)
			}
			if n := requests.Load(); n <= 3 || took > time.Second {
				t.Errorf("it took %s and %d requests", took, n)
			}
		})
	}
}

// TestTakeWaitsAgain checks that a lease which is lost before it has its whole
// TTL is replaced: nothing has run under it.
func TestTakeWaitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := driver.LeaseID("")
		lease, _, err := handOver(t, func(engine *memlock.Engine, req driver.ExtendRequest) error {
			if lost == "" {
				lost = req.LeaseID
				return engine.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
			}
			return nil
		}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if lost == "" || lease.ID() == lost || !lease.Valid() {
			t.Errorf("lease %s (%s left), lease %s was lost", lease.ID(), lease.Remaining(), lost)
		}
	})
}

// TestTakeEndsInTime checks that waiting again counts towards -w.
func TestTakeEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, _, err := handOver(t, func(engine *memlock.Engine, req driver.ExtendRequest) error {
			// The lease goes to somebody else.
			if err := engine.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
				return err
			}
			_, err := engine.Acquire(t.Context(), driver.AcquireRequest{Name: req.Name, LeaseID: driver.NewLeaseID(), TTL: time.Hour})
			return err
		}, 10*time.Second)
		if took := time.Since(began); !errors.Is(err, holdfast.ErrHeld) || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestTakeGivesUp checks that the lock does not stay behind when it cannot be
// confirmed for good.
func TestTakeGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *memlock.Engine
		_, _, err := handOver(t, func(engine *memlock.Engine, _ driver.ExtendRequest) error {
			store = engine
			return fmt.Errorf("%w: by a test", driver.ErrPermission)
		}, 0)
		if !errors.Is(err, holdfast.ErrPermission) {
			t.Errorf("the error is %v", err)
		}
		if lock, err := store.Inspect(t.Context(), "job"); err != nil || len(lock.Holders) > 0 {
			t.Errorf("the lock is %+v (%v)", lock, err)
		}
	})
}
