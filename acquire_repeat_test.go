package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

func TestAcquireRetriesWithTheSameLeaseID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		lost := 0
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire" && lost < 3 {
				lost++
				return errLink
			}
			return nil
		})
		l := mustAcquire(t, c, "a", nil) // not ErrHeld by itself
		lock, _ := engine.Inspect(t.Context(), "a")
		if len(lock.Holders) != 1 || lock.Holders[0].Token != l.Token() || lock.Holders[0].LeaseID != l.ID() {
			t.Errorf("the store has %+v, the lease token %d", lock.Holders, l.Token())
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// INVARIANT I5: whatever the instant at which the context ends, nothing stays.
func TestAbandonedAcquireLeavesNothing(t *testing.T) {
	for _, hook := range []string{"request delayed", "reply delayed"} {
		t.Run(hook, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				slow := func(_ context.Context, op string) error {
					if op == "acquire" {
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				}
				if hook == "request delayed" {
					// The request reaches the store although its sender has given
					// up, and after its own cancel.
					engine.set(func(ctx context.Context, op string) error {
						_ = slow(ctx, op)
						return nil
					}, nil)
				} else {
					engine.set(nil, slow)
				}
				for ms := range 130 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
					l, err := c.Acquire(ctx, "a", nil)
					cancel()
					if err == nil {
						l.Release(t.Context())
					}
					time.Sleep(time.Second)
					if n := holders(t, engine.Engine, "a"); n != 0 {
						t.Fatalf("context ended after %d ms: %d leases stayed behind", ms, n)
					}
				}
			})
		})
	}
}

func TestZombieAcquireMeetsTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		zombies := make(chan driver.AcquireRequest, 1)
		held := &holding{faulty: engine, requests: zombies}
		c := newClient(t, held, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Acquire(ctx, "a", nil)
		wantErr(t, err, context.DeadlineExceeded)
		synctest.Wait()
		reply, err := engine.Acquire(t.Context(), <-zombies)
		if err != nil || reply.Outcome != driver.Cancelled {
			t.Errorf("the zombie got %+v, %v; want Cancelled", reply, err)
		}
	})
}

// A holding engine holds acquire requests up on the wire.
type holding struct {
	*faulty
	requests chan driver.AcquireRequest
}

func (h *holding) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	h.requests <- req
	<-ctx.Done()
	return driver.AcquireReply{}, ctx.Err()
}

func TestUnreachableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		refuse := func(context.Context, string) error { return driver.ErrUnavailable }
		engine.set(refuse, nil)
		start := time.Now()
		_, err := c.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		if took := time.Since(start); took != 0 {
			t.Errorf("TryAcquire took %s, want an answer at once", took)
		}
		_, err = c.Acquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		if took := time.Since(start); took < 4*time.Second || took > 7*time.Second {
			t.Errorf("Acquire gave up after %s, want about the request timeout", took)
		}
		engine.set(hang("acquire", "release"), nil)
		_, err = c.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v looks like the end of the caller's context", err)
		}
		engine.heal()
	})
}

// A waiter that is behind a holder already rides out an outage.
func TestWaiterRidesOutOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		mustAcquire(t, c, "a", &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff})
		time.AfterFunc(time.Second, func() { engine.set(fail(errLink, "acquire", "refresh"), nil) })
		time.AfterFunc(2*time.Minute, engine.heal)
		start := time.Now()
		l, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		if took := time.Since(start); took < 2*time.Minute || took > 2*time.Minute+2*time.Second {
			t.Errorf("acquired after %s, want soon after the outage of 2m", took)
		}
		if n := engine.count("acquire") + engine.count("refresh"); n > 300 {
			t.Errorf("%d requests in 2 minutes: the waiter spins", n)
		}
	})
}

func TestLateGrantIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire" {
				time.Sleep(1200 * time.Millisecond)
			}
			return nil
		})
		_, err := c.TryAcquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second})
		wantErr(t, err, holdfast.ErrUnavailable)
		synctest.Wait()
		if n := holders(t, engine.Engine, "a"); n != 0 {
			t.Errorf("%d leases stayed behind", n)
		}
	})
}
