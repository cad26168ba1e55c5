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

// takeAway ends a lease in the store, as a person or a loss of data does.
func takeAway(t testing.TB, engine *memlock.Engine, name string) {
	t.Helper()
	lock, err := engine.Inspect(context.Background(), name)
	if err != nil || len(lock.Holders) == 0 {
		t.Fatalf("Inspect = %+v, %v; want a holder", lock, err)
	}
	for _, h := range lock.Holders {
		if err := engine.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID}); err != nil {
			t.Fatal(err)
		}
	}
}

// overtaken fails t unless l is lost at this instant.
func overtaken(t testing.TB, l *holdfast.Lease) {
	t.Helper()
	if l.Context().Err() == nil {
		t.Error("the earlier lease goes on")
		return
	}
	wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	if l.Valid() {
		t.Error("the earlier lease is valid")
	}
}

// Of two exclusive leases of a name the earlier one ends at once.
func TestLaterLeaseEndsEarlier(t *testing.T) {
	ways := map[string]func(t *testing.T, c *holdfast.Client) *holdfast.Lease{
		"attempt": func(t *testing.T, c *holdfast.Client) *holdfast.Lease { return mustAcquire(t, c, "a", nil) },
		"all at once": func(t *testing.T, c *holdfast.Client) *holdfast.Lease {
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ls.Release(context.Background()) })
			return ls.Lease("a")
		},
	}
	for way, acquire := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memlock.New()
				c := newClient(t, engine, &holdfast.Options{TTL: time.Minute})
				first := mustAcquire(t, c, "a", nil)
				other := mustAcquire(t, c, "other", nil)
				takeAway(t, engine, "a")
				second := acquire(t, c)
				synctest.Wait()
				overtaken(t, first)
				if !second.Valid() || !other.Valid() {
					t.Error("another lease ended as well")
				}
				wantErr(t, first.Release(t.Context()), holdfast.ErrLost)
				if holders(t, engine, "a") != 1 || !second.Valid() {
					t.Error("the release of the first ended the second")
				}
			})
		})
	}
}

// A lease that the store hands over ends an earlier one.
func TestHandedOverLeaseEndsEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		first := mustAcquire(t, c, "a", nil)
		second := enqueue(t.Context(), c, "a", nil)
		takeAway(t, engine, "a")
		l := granted(t, second).lease
		overtaken(t, first)
		if !l.Valid() {
			t.Error("the second is not valid")
		}
	})
}

// A grant whose answer comes after that of a later one is not handed out.
func TestGrantBehindGreaterToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, delay(2*time.Second)) // the answers, not the requests
		late := make(chan outcome, 1)
		go func() {
			l, err := c.TryAcquire(t.Context(), "a", nil)
			late <- outcome{l, err, time.Now()}
		}()
		synctest.Wait()
		takeAway(t, engine.Engine, "a")
		engine.heal()
		l := mustAcquire(t, c, "a", nil)
		o := <-late
		wantErr(t, o.err, holdfast.ErrHeld)
		var held *holdfast.HeldError
		if errors.As(o.err, &held) && (held.Holder.PID != l.Holder().PID || held.ExpiresIn <= 0) {
			t.Errorf("held by %s for %s, want our own later lease", held.Holder, held.ExpiresIn)
		}
		if !l.Valid() {
			t.Error("the later lease is lost")
		}
		l.Release(t.Context())
		time.Sleep(time.Second)
		nothingLeft(t, engine, "a")
	})
}

// One that waits goes on waiting behind the later lease, under another ID.
func TestWaiterBehindGreaterTokenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, delay(2*time.Second))
		waiter := enqueue(t.Context(), c, "a", nil)
		takeAway(t, engine.Engine, "a")
		engine.heal()
		l := mustAcquire(t, c, "a", nil)
		time.Sleep(10 * time.Second)
		if len(waiter) > 0 {
			t.Fatalf("the waiter has %+v beside a valid lease: %v", <-waiter, l.Valid())
		}
		l.Release(t.Context())
		second := granted(t, waiter).lease
		if second.Token() <= l.Token() {
			t.Errorf("token %d after %d", second.Token(), l.Token())
		}
		second.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// AcquireAll whose grants come behind a greater token of one name gets all of
// them when that one is free.
func TestAcquireAllBehindGreaterToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, func(ctx context.Context, op string) error {
			if op == "acquire-all" {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		done := make(chan *holdfast.Leases, 1)
		go func() {
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b", "c"}, nil)
			if err != nil {
				t.Error(err)
			}
			done <- ls
		}()
		synctest.Wait()
		takeAway(t, engine.Engine, "b")
		l := mustAcquire(t, c, "b", nil)
		time.Sleep(10 * time.Second)
		if len(done) > 0 || !l.Valid() {
			t.Fatal("AcquireAll is done beside a valid lease")
		}
		l.Release(t.Context())
		ls := <-done
		if !ls.Valid() || ls.Token("b") <= l.Token() {
			t.Errorf("valid %v, token %d after %d", ls.Valid(), ls.Token("b"), l.Token())
		}
		ls.Release(t.Context())
		nothingLeft(t, engine, "a", "b", "c")
	})
}

// What may be held together, or was held before, ends nothing.
func TestLeasesThatAreNoRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		valid := func(what string, leases ...*holdfast.Lease) {
			t.Helper()
			time.Sleep(time.Minute)
			for i, l := range leases {
				if !l.Valid() {
					t.Errorf("%s: lease %d: %v", what, i, context.Cause(l.Context()))
				}
				l.Release(t.Context())
			}
		}
		valid("shared", mustAcquire(t, c, "a", shared), mustAcquire(t, c, "a", shared))
		valid("permits", mustAcquire(t, c, "b", semaphore(2, 1)), mustAcquire(t, c, "b", semaphore(2, 1)))
		l := mustAcquire(t, c, "c", nil)
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		valid("downgraded", l, mustAcquire(t, c, "c", shared))

		kept := mustAcquire(t, c, "d", &holdfast.AcquireOptions{MinHold: time.Minute})
		kept.Release(t.Context())
		next, err := c.Acquire(t.Context(), "d", nil)
		if err != nil {
			t.Fatal(err)
		}
		valid("kept closed", next)
	})
}

// A lease that was downgraded is in the way of exclusive ones as before.
func TestGrantBehindDowngradedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, delay(2*time.Second))
		late := make(chan error, 1)
		go func() {
			_, err := c.TryAcquire(t.Context(), "a", nil)
			late <- err
		}()
		synctest.Wait()
		takeAway(t, engine.Engine, "a")
		engine.heal()
		l := mustAcquire(t, c, "a", nil)
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, <-late, holdfast.ErrHeld)
		takeAway(t, engine.Engine, "a")
		mustAcquire(t, c, "a", nil).Release(t.Context())
		overtaken(t, l)
		l.Release(t.Context())
	})
}
