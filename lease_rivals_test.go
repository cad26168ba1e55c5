package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// takeAway ends the leases of name in the store, like an operator or a loss of data.
func takeAway(t testing.TB, engine *mem.Engine, name string) {
	t.Helper()
	lock, err := engine.Inspect(context.Background(), name)
	need(t, err == nil && len(lock.Holders) != 0, "Inspect = %+v, %v; want a holder", lock, err)
	for _, h := range lock.Holders {
		must(t, engine.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID}))
	}
}

// overtaken fails t unless l is lost now.
func overtaken(t testing.TB, l *holdfast.Lease) {
	t.Helper()
	if l.Context().Err() == nil {
		t.Error("the earlier lease goes on")
		return
	}
	wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	expect(t, !l.Valid(), "the earlier lease is valid")
}

// TestLaterLeaseEndsEarlier checks that the earlier of two exclusive leases of a name ends at once.
func TestLaterLeaseEndsEarlier(t *testing.T) {
	ways := map[string]func(t *testing.T, c *holdfast.Client) *holdfast.Lease{
		"attempt": func(t *testing.T, c *holdfast.Client) *holdfast.Lease { return mustAcquire(t, c, "a", nil) },
		"all at once": func(t *testing.T, c *holdfast.Client) *holdfast.Lease {
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
			must(t, err)
			t.Cleanup(func() { ls.Release(context.Background()) })
			return ls.Lease("a")
		},
	}
	for way, acquire := range ways {
		runInBubble(t, way, func(t *testing.T) {
			engine := mem.New(nil)
			c := newClient(t, engine, &holdfast.Options{TTL: time.Minute})
			first := mustAcquire(t, c, "a", nil)
			other := mustAcquire(t, c, "other", nil)
			takeAway(t, engine, "a")
			second := acquire(t, c)
			synctest.Wait()
			overtaken(t, first)
			expect(t, second.Valid() && other.Valid(), "another lease ended as well")
			wantErr(t, first.Release(t.Context()), holdfast.ErrLost)
			expect(t, holders(t, engine, "a") == 1 && second.Valid(), "the release of the first ended the second")
		})
	}
}

// TestHandedOverLeaseEndsEarlier checks that a lease that the store hands over ends an earlier one.
func TestHandedOverLeaseEndsEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		first := mustAcquire(t, c, "a", nil)
		second := enqueue(t.Context(), c, "a", nil)
		takeAway(t, engine, "a")
		l := granted(t, second).lease
		overtaken(t, first)
		expect(t, l.Valid(), "the second is not valid")
	})
}

// TestGrantBehindGreaterToken checks that a grant whose reply arrives after that of a later grant
// is not returned.
func TestGrantBehindGreaterToken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(nil, delay(2*time.Second)) // only the replies
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
		expect(t, l.Valid(), "the later lease is lost")
		l.Release(t.Context())
		time.Sleep(time.Second)
		nothingLeft(t, engine, "a")
	})
}

// TestWaiterBehindGreaterTokenWaits checks that a waiter with such a grant continues to wait behind
// the later lease, with another ID.
func TestWaiterBehindGreaterTokenWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
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
		expect(t, second.Token() > l.Token(), "token %d after %d", second.Token(), l.Token())
		second.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// TestAcquireAllBehindGreaterToken checks that an AcquireAll with such a grant for one name returns
// all leases when that name is free.
func TestAcquireAllBehindGreaterToken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(nil, func(ctx context.Context, op string) error {
			if op == "acquire-all" {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		done := make(chan *holdfast.Leases, 1)
		go func() {
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b", "c"}, nil)
			expect(t, err == nil, "%v", err)
			done <- ls
		}()
		synctest.Wait()
		takeAway(t, engine.Engine, "b")
		l := mustAcquire(t, c, "b", nil)
		time.Sleep(10 * time.Second)
		need(t, len(done) <= 0 && l.Valid(), "AcquireAll is done beside a valid lease")
		l.Release(t.Context())
		ls := <-done
		expect(t, ls.Valid() && ls.Token("b") > l.Token(), "valid %v, token %d after %d", ls.Valid(), ls.Token("b"), l.Token())
		ls.Release(t.Context())
		nothingLeft(t, engine, "a", "b", "c")
	})
}

// TestLeasesThatAreNoRivals checks that a lease does not end leases that are compatible with it or
// were released before.
func TestLeasesThatAreNoRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		valid := func(what string, leases ...*holdfast.Lease) {
			t.Helper()
			time.Sleep(time.Minute)
			for i, l := range leases {
				expect(t, l.Valid(), "%s: lease %d: %v", what, i, context.Cause(l.Context()))
				l.Release(t.Context())
			}
		}
		valid("shared", mustAcquire(t, c, "a", shared), mustAcquire(t, c, "a", shared))
		valid("permits", mustAcquire(t, c, "b", semaphore(2, 1)), mustAcquire(t, c, "b", semaphore(2, 1)))
		l := mustAcquire(t, c, "c", nil)
		must(t, l.Downgrade(t.Context()))
		valid("downgraded", l, mustAcquire(t, c, "c", shared))

		kept := mustAcquire(t, c, "d", &holdfast.AcquireOptions{MinHold: time.Minute})
		kept.Release(t.Context())
		next, err := c.Acquire(t.Context(), "d", nil)
		must(t, err)
		valid("kept closed", next)
	})
}

// TestGrantBehindDowngradedLease checks that a downgraded lease still conflicts with exclusive
// leases.
func TestGrantBehindDowngradedLease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
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
		must(t, l.Downgrade(t.Context()))
		wantErr(t, <-late, holdfast.ErrHeld)
		takeAway(t, engine.Engine, "a")
		mustAcquire(t, c, "a", nil).Release(t.Context())
		overtaken(t, l)
		l.Release(t.Context())
	})
}

// TestDowngrade checks that Downgrade grants the lock at once to the shared waiters at the head of
// the queue only, and that it changes only the mode of the lease.
func TestDowngrade(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		readers := []<-chan outcome{enqueue(t.Context(), c, "a", shared), enqueue(t.Context(), c, "a", shared)}
		writer := enqueue(t.Context(), c, "a", nil)
		behind := enqueue(t.Context(), c, "a", shared)
		time.Sleep(time.Minute + time.Second) // no renewal is due at this instant
		token, deadline, start := l.Token(), l.Deadline(), time.Now()
		must(t, l.Downgrade(t.Context()))
		expect(t, l.Mode() == holdfast.Shared && l.Token() == token && l.Deadline().Equal(deadline) && l.Valid(),
			"mode %s, token %d, deadline moved by %s, valid %t", l.Mode(), l.Token(), l.Deadline().Sub(deadline), l.Valid())
		holding := []*holdfast.Lease{l}
		for _, r := range readers {
			o := granted(t, r)
			took := o.at.Sub(start)
			expect(t, took == 0, "a reader came %s later", took)
			holding = append(holding, o.lease)
		}
		err := l.Downgrade(t.Context())
		expect(t, err == nil, "a second time: %v", err)
		time.Sleep(10 * time.Minute)
		stillWaits(t, writer)
		stillWaits(t, behind)
		for _, l := range holding {
			wantErr(t, l.Release(t.Context()), nil)
		}
		granted(t, writer).lease.Release(t.Context())
		granted(t, behind).lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

func TestDowngradeOfLostLease(t *testing.T) {
	tests := map[string]func(*faulty, *holdfast.Lease){
		"taken away": func(f *faulty, l *holdfast.Lease) {
			f.Engine.Release(context.Background(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		},
		"released": func(_ *faulty, l *holdfast.Lease) { l.Release(context.Background()) },
		"expired":  func(_ *faulty, l *holdfast.Lease) { <-l.Context().Done() },
	}
	for name, lose := range tests {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff})
			lose(engine, l)
			wantErr(t, l.Downgrade(t.Context()), holdfast.ErrLost)
			expect(t, !l.Valid() && l.Context().Err() != nil, "still valid")
			if n := engine.count("downgrade"); name != "taken away" && n != 0 {
				t.Errorf("%d requests for a lease that has ended", n)
			}
			if holders(t, engine.Engine, "a") > 0 && name != "expired" {
				t.Error("the store has a lease again")
			}
		})
	}
}

// TestDowngradeUnanswered checks that the lease does not change while it is unknown whether the
// store has downgraded it, and that a repeat succeeds.
func TestDowngradeUnanswered(t *testing.T) {
	faults := map[string]struct {
		before, after func(context.Context, string) error
		want          error
	}{
		"request lost": {before: fail(errLink, "downgrade"), want: holdfast.ErrOutcomeUnknown},
		"reply lost":   {after: fail(errLink, "downgrade"), want: holdfast.ErrOutcomeUnknown},
		"not answered": {after: hang("downgrade"), want: holdfast.ErrOutcomeUnknown},
		"refused":      {before: fail(driver.ErrUnavailable, "downgrade"), want: holdfast.ErrUnavailable},
	}
	for name, f := range faults {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", nil)
			reader := enqueue(t.Context(), c, "a", shared)
			engine.set(f.before, f.after)
			start := time.Now()
			wantErr(t, l.Downgrade(t.Context()), f.want)
			took := time.Since(start)
			expect(t, took <= 5*time.Second, "took %s, want the request timeout at most", took)
			expect(t, l.Mode() == holdfast.Exclusive && l.Valid(), "mode %s, valid %t; want no change", l.Mode(), l.Valid())
			engine.heal()
			err := l.Downgrade(t.Context())
			expect(t, err == nil && l.Mode() == holdfast.Shared, "the repeat: %v, mode %s", err, l.Mode())
			granted(t, reader).lease.Release(t.Context())
			wantErr(t, l.Release(t.Context()), nil)
			nothingLeft(t, engine, "a")
		})
	}
}

// An unsharing engine has the method Downgrade, but not the capability.
type unsharing struct{ *faulty }

func (unsharing) Capabilities() driver.Capabilities { return driver.Capabilities{Queue: true} }

func TestDowngradeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		for _, as := range []driver.Engine{plain{engine}, unsharing{engine}} {
			l := mustAcquire(t, newClient(t, as, nil), "a", nil)
			wantErr(t, l.Downgrade(t.Context()), holdfast.ErrUnsupported)
			l.Release(t.Context())
		}
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", semaphore(1, 1))
		wantErr(t, l.Downgrade(t.Context()), holdfast.ErrInvalid)
		l.Release(t.Context())
		l = mustAcquire(t, c, "a", shared)
		err := l.Downgrade(t.Context())
		expect(t, err == nil, "of a shared lease: %v", err)
		n := engine.count("downgrade")
		expect(t, n <= 1, "%d requests, want none but that of the shared lease", n)
		l.Release(t.Context())
	})
}

// TestReadersDoNotStarveWriter checks that successive readers do not starve a writer: later readers
// wait for it.
func TestReadersDoNotStarveWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var clients []*holdfast.Client
		for range 3 {
			clients = append(clients, newClient(t, engine, nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 6 { // some of them read at any time
			go func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				for ctx.Err() == nil {
					if l, err := clients[i%3].Acquire(ctx, "a", shared); err == nil {
						time.Sleep(2 * time.Second)
						l.Release(ctx)
					}
				}
			}()
		}
		time.Sleep(10 * time.Second)
		n := holders(t, engine.Engine, "a")
		need(t, n >= 3, "%d readers, want several", n)
		for range 5 {
			start := time.Now()
			o := granted(t, enqueue(t.Context(), clients[0], "a", nil))
			took := o.at.Sub(start)
			expect(t, took <= 2*time.Second, "the writer waited %s, want no longer than those who read already", took)
			n := holders(t, engine.Engine, "a")
			expect(t, n == 1, "%d hold the lock with the writer", n)
			time.Sleep(time.Second)
			o.lease.Release(t.Context())
			time.Sleep(3 * time.Second)
		}
		cancel()
		time.Sleep(3 * time.Second)
		nothingLeft(t, engine, "a")
	})
}

// TestPermitsAreServedInOrder checks that requests for several permits are served in order: a small
// request does not overtake a large one.
func TestPermitsAreServedInOrder(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		first := mustAcquire(t, c, "a", semaphore(4, 4))
		work := []int{1, 3, 2, 1, 4, 1, 2} // permits, and seconds
		tokens := make([]uint64, len(work))
		var wg sync.WaitGroup
		for i, n := range work {
			waiting := enqueue(t.Context(), c, "a", semaphore(4, n))
			wg.Go(func() {
				l := granted(t, waiting).lease
				tokens[i] = l.Token()
				lock, _ := engine.Inspect(t.Context(), "a")
				taken := 0
				for _, h := range lock.Holders {
					taken += h.Mode.Permits()
				}
				expect(t, taken <= 4, "%d permits of 4 are taken", taken)
				time.Sleep(time.Duration(n) * time.Second)
				l.Release(t.Context())
			})
		}
		start := time.Now()
		first.Release(t.Context())
		wg.Wait()
		// 1 and 3 together, then 2 and 1, then 4, then 1 and 2.
		took := time.Since(start)
		expect(t, took == 11*time.Second && slices.IsSorted(tokens), "served in %s, with tokens %d; want 11s, and tokens in the order of the queue", took, tokens)
		nothingLeft(t, engine, "a")
	})
}
