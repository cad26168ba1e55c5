package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestCohortBroken checks that a break ends the present turn with its reason, and that the waiters
// then acquire the lock. It names no token, the first turn's, or all up to the present turn's.
func TestCohortBroken(t *testing.T) {
	for _, named := range []string{"any", "first", "present"} {
		runInBubble(t, named, func(t *testing.T) {
			engine := newFaulty()
			c, admin := newClient(t, engine, cohorts), newClient(t, newFaultyOn(engine.Engine), nil)
			waiting := queueUp(c, 4, nil)
			first := soon(t, waiting[0])
			release(t, first)
			l := soon(t, waiting[1])
			opts := &holdfast.BreakOptions{Author: "ada", Reason: "it is wrong"}
			switch named {
			case "first":
				opts.Token = first.Token()
			case "present":
				opts.Token, opts.Older = l.Token(), true
			}
			must(t, errOf(admin.Break(t.Context(), "a", opts)))
			<-l.Context().Done()
			why(t, l, "ada", "it is wrong")
			if named == "first" {
				_ = l.Release(t.Context())
			}
			began := time.Now()
			third := soon(t, waiting[2]) // before the holder calls Release, unless named is first
			expect(t, third.ID() != l.ID() && third.Token() > l.Token() && time.Since(began) <= 20*time.Millisecond,
				"token %d after %d, within %s", third.Token(), l.Token(), time.Since(began))
			wantErr(t, l.Release(t.Context()), holdfast.ErrBroken)
			release(t, third)
			release(t, soon(t, waiting[3]))
			nothingLeft(t, engine, "a")
		})
	}
}

// TestCohortLossDuringHandOn checks that a loss of a turn that is being handed on ends the next
// turn. If the lease is not named, the client checks the next turn's.
func TestCohortLossDuringHandOn(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		waiting := queueUp(c, 2, nil)
		first := soon(t, waiting[0])
		release(t, first)
		next := soon(t, waiting[1])
		holdfast.LossDuringHandOn(c, first, driver.Loss{Name: "a", LeaseID: first.ID(), Err: driver.ErrLost})
		expect(t, errors.Is(context.Cause(next.Context()), holdfast.ErrLost), "the next turn goes on")
	})
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		waiting := queueUp(c, 2, nil)
		first := soon(t, waiting[0])
		release(t, first)
		soon(t, waiting[1])
		holdfast.LossDuringHandOn(c, first, driver.Loss{Name: "a"}) // this may be a loss
		synctest.Wait()
		n := engine.count("extend")
		expect(t, n == 1, "the client looked for the next turn %d times, want once", n)
	})
}

// TestCohortCancelled checks that a caller that stops waiting has no effect on the others, even as
// their leader. The last one gives up the place.
func TestCohortCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, cohorts), newClient(t, newFaultyOn(engine.Engine), nil)
		for _, cancelled := range [][]int{{0}, {1}, {0, 1}, {2, 0}, {0, 1, 2}, {2, 1, 0}} {
			free := foreign(t, engine, "a", time.Hour)
			var waiting []<-chan outcome
			var cancels []context.CancelFunc
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting, cancels = append(waiting, enqueue(ctx, c, "a", nil)), append(cancels, cancel)
			}
			theirs := enqueue(t.Context(), other, "a", nil)
			for _, i := range cancelled {
				cancels[i]()
				err := ended(t, waiting[i]).err
				held := (*holdfast.HeldError)(nil)
				expect(t, errors.Is(err, context.Canceled) && errors.As(err, &held), "cancelled %v: %v, want the cancel and who held it", cancelled, err)
				synctest.Wait()
			}
			n := places(t, engine)
			expect(t, n == 1+min(1, 3-len(cancelled)), "cancelled %v: %d places", cancelled, n)
			free()
			for i, w := range waiting { // the cohort keeps its place before the other client's
				if !slices.Contains(cancelled, i) {
					release(t, soon(t, w))
				}
			}
			release(t, soon(t, theirs))
			time.Sleep(time.Minute)
			nothingLeft(t, engine, "a")
			cancels[0]()
			cancels[1]()
			cancels[2]()
		}
	})
}

// TestCohortCancelledAtAnyTime checks that no lease and no place is left, and no turn lost,
// whenever callers stop waiting, and whichever requests get no reply. INVARIANT I5.
func TestCohortCancelledAtAnyTime(t *testing.T) {
	for ms := range 25 {
		for _, n := range []int{1, 3} {
			inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
				engine.set(delay(3*time.Millisecond), delay(4*time.Millisecond))
				time.AfterFunc(8*time.Millisecond, foreign(t, engine, "a", time.Hour))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				defer cancel()
				var all sync.WaitGroup
				got := 0
				for i := range n + 1 {
					ctx := ctx
					if i == n {
						ctx = t.Context()
					}
					all.Go(func() {
						l, err := c.Acquire(ctx, "a", nil)
						if err == nil {
							time.Sleep(time.Millisecond)
							err = l.Release(t.Context())
						}
						if i == n {
							got++
						}
						expect(t, err == nil || i < n && errors.Is(err, context.DeadlineExceeded), "%d ms: caller %d: %v", ms, i, err)
					})
				}
				all.Wait()
				engine.heal()
				time.Sleep(time.Minute)
				nothingLeft(t, engine, "a")
				expect(t, got == 1, "the last caller has not been served")
			})
		}
	}
}

// A spent context ends without closing Done.
type spent struct {
	context.Context
	over atomic.Bool
}

func (s *spent) Err() error {
	if s.over.Load() {
		return context.Canceled
	}
	return s.Context.Err()
}

// TestCohortCancelledInTheMoment checks that a caller that stops waiting just as it becomes the
// leader, or as its turn begins, passes this on. The last caller gives it up.
func TestCohortCancelledInTheMoment(t *testing.T) {
	for _, others := range []int{0, 2} {
		for _, receives := range []string{"lead", "lead and place", "lease"} {
			runWithClient(t, fmt.Sprint(receives, ", others ", others), cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
				first := soon(t, enqueue(t.Context(), c, "a", nil))
				ahead, leave := context.WithCancel(t.Context())
				defer leave()
				if receives == "lead and place" {
					time.Sleep(time.Second) // no turn can follow the first any more
					enqueue(ahead, c, "a", nil)
				}
				ctx := &spent{Context: t.Context()}
				gone := enqueue(ctx, c, "a", nil)
				waiting := queueUp(c, others, nil)
				ctx.over.Store(true)
				switch receives {
				case "lead":
					time.Sleep(20 * time.Millisecond)
				case "lead and place":
					leave()
					synctest.Wait()
				}
				release(t, first)
				o := ended(t, gone)
				expect(t, errors.Is(o.err, context.Canceled), "%v, want the cancel", o.err)
				for _, w := range waiting {
					release(t, soon(t, w))
				}
				synctest.Wait()
				nothingLeft(t, engine, "a") // at once
			})
		}
	}
}

// TestCohortUnavailable checks that an error that applies to all callers ends all waits at once.
func TestCohortUnavailable(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(hang("acquire"), nil)
		start := time.Now()
		waiting := queueUp(c, 1, nil)
		time.Sleep(time.Millisecond) // the first gives up 1 ms before the others would
		waiting = append(waiting, queueUp(c, 2, nil)...)
		patient := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: time.Minute})
		for _, w := range waiting {
			o := ended(t, w)
			expect(t, errors.Is(o.err, holdfast.ErrUnavailable) && o.at.Sub(start) <= 6*time.Second, "after %s: %v", o.at.Sub(start), o.err)
		}
		engine.heal()
		release(t, soon(t, patient))
		release(t, mustAcquire(t, c, "a", semaphore(3, 1)))
		kind := mustAcquire(t, c, "a", semaphore(3, 1))
		wantErr(t, ended(t, enqueue(t.Context(), c, "a", nil)).err, holdfast.ErrKindMismatch)
		release(t, kind)
		time.Sleep(2 * time.Minute)
		nothingLeft(t, engine, "a")
	})
}

// TestCohortUnavailableToPatientLeader checks that the leader's MaxWait does not apply to others.
func TestCohortUnavailableToPatientLeader(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(hang("acquire"), nil)
		start := time.Now()
		patient := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: time.Minute})
		for _, w := range queueUp(c, 2, nil) {
			var held *holdfast.HeldError
			o := ended(t, w)
			expect(t, errors.Is(o.err, holdfast.ErrUnavailable) && !errors.As(o.err, &held) && o.at.Sub(start) <= 6*time.Second,
				"after %s: %v", o.at.Sub(start), o.err)
		}
		engine.heal()
		l := soon(t, patient)
		waiting := queueUp(c, 2, nil) // their leader has learned of the holder
		time.Sleep(time.Minute)
		release(t, l)
		release(t, soon(t, waiting[0]))
		release(t, soon(t, waiting[1]))
		nothingLeft(t, engine, "a")
	})
}

// TestCohortSilent checks that the errors of the other callers do not claim that the lock is held
// while the store does not answer the leader. INVARIANT I10.
func TestCohortSilent(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(hang("acquire"), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		leads := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: time.Minute})
		brief, cancelled := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: 2 * time.Second}), enqueue(ctx, c, "a", nil)
		var held *holdfast.HeldError
		o := ended(t, brief)
		expect(t, errors.Is(o.err, holdfast.ErrUnavailable) && !errors.As(o.err, &held), "after MaxWait: %v", o.err)
		o = ended(t, cancelled)
		expect(t, errors.Is(o.err, context.DeadlineExceeded) && !errors.As(o.err, &held), "after the caller's own limit: %v", o.err)
		engine.heal()
		release(t, soon(t, leads))
		nothingLeft(t, engine, "a")
	})
}

// TestCohortDowngraded checks that no exclusive turn follows a lease that may be shared.
// INVARIANT I1.
func TestCohortDowngraded(t *testing.T) {
	for _, lost := range []bool{false, true} {
		inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			waiting := queueUp(c, 2, nil)
			l := soon(t, waiting[0])
			if lost {
				engine.set(nil, fail(errLink, "downgrade"))
			}
			err := l.Downgrade(t.Context())
			need(t, (err != nil) == lost, "Downgrade = %v, its reply is lost: %t", err, lost)
			engine.heal()
			release(t, l)
			next := soon(t, waiting[1])
			expect(t, next.ID() != l.ID(), "an exclusive turn followed a lease that others may share")
		})
	}
}

// TestCohortLeft checks that a turn may be left and adopted, and that the others get the lock
// afterwards. The client keeps nothing of a lease that was left.
func TestCohortLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, cohorts), newClient(t, newFaultyOn(engine.Engine), nil)
		waiting := queueUp(c, 3, nil)
		release(t, soon(t, waiting[0]))
		l := soon(t, waiting[1])
		adopted := mustAdopt(t, other, mustLeave(t, l), nil)
		need(t, adopted.Token() == l.Token(), "adopted %v, want %v", adopted, l)
		time.Sleep(time.Second)
		stillWaits(t, waiting[2])
		release(t, adopted)
		last := soon(t, waiting[2])
		expect(t, last.Token() > l.Token(), "token %d after %d", last.Token(), l.Token())
		release(t, last)
		nothingLeft(t, engine, "a")
		mustLeave(t, soon(t, enqueue(t.Context(), c, "a", nil)))
		n := holdfast.CohortsOf(c)
		expect(t, n == 0, "the client knows %d cohorts", n)
	})
}

// TestCohortClosed checks that Close and Shutdown end all waits and leave no lease.
func TestCohortClosed(t *testing.T) {
	for _, end := range []string{"close", "shutdown"} {
		inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			waiting := queueUp(c, 4, nil)
			l := soon(t, waiting[0])
			if end == "close" {
				_ = c.Close()
			} else {
				time.AfterFunc(time.Second, func() { _ = l.Release(context.Background()) })
				wantErr(t, c.Shutdown(t.Context()), nil)
			}
			for _, w := range waiting[1:] {
				wantErr(t, ended(t, w).err, holdfast.ErrClosed)
			}
			nothingLeft(t, engine, "a")
		})
	}
}

// TestCohortIsForPlainRequests checks that requests with options that a turn cannot satisfy have
// places of their own, and that TryAcquire does not wait.
func TestCohortIsForPlainRequests(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		free := foreign(t, engine, "a", time.Hour)
		var waiting []<-chan outcome
		for _, o := range []holdfast.AcquireOptions{
			{}, {}, {KeepAlive: holdfast.KeepAliveOff}, {MaxWait: time.Hour}, // one place
			{TTL: time.Second}, {TTL: time.Second}, // another
			{Mode: holdfast.Shared}, {MinHold: time.Second}, {MaxHold: time.Second}, {StallAfter: time.Second}, {LockDelay: time.Second},
			{MinToken: 1}, {WholeTTL: true}, {Reason: "r"}, {Labels: map[string]string{"k": "v"}}, {OnWait: func(holdfast.WaitState) {}},
		} {
			waiting = append(waiting, enqueue(t.Context(), c, "a", &o))
		}
		n := places(t, engine)
		expect(t, n == 12, "%d places, want 12", n)
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", nil)), holdfast.ErrHeld)
		free()
		for range waiting {
			served := false
			for i := 0; !served; i = (i + 1) % len(waiting) {
				select {
				case o := <-waiting[i]:
					release(t, o.lease)
					served = true
				default:
					time.Sleep(time.Millisecond)
				}
			}
		}
	})
}

// TestCohortIsObserved checks that Observers receive each turn with its token, and the waits.
func TestCohortIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaultyOn(mem.New(nil))
		g := newPairs(t)
		var mu sync.Mutex
		var tokens []uint64
		var kinds []holdfast.EventKind
		c := newClient(t, engine, &holdfast.Options{Cohorts: true, Observer: func(e holdfast.Event) {
			g.observe(e)
			mu.Lock()
			defer mu.Unlock()
			if kinds = append(kinds, e.Kind); e.Kind == holdfast.Acquired {
				tokens = append(tokens, e.Token)
			}
		}})
		for _, w := range queueUp(c, 3, nil) {
			release(t, soon(t, w))
		}
		g.balance()
		mu.Lock()
		defer mu.Unlock()
		expect(t, len(tokens) == 3 && tokens[1] == tokens[0]+1 && tokens[2] == tokens[0]+2, "tokens %v", tokens)
		want := []holdfast.EventKind{
			holdfast.Acquired, holdfast.Waiting, holdfast.Waiting, holdfast.Released, holdfast.Acquired,
			holdfast.Released, holdfast.Acquired, holdfast.Released,
		}
		expect(t, slices.Equal(kinds, want), "events %v, want %v", kinds, want)
	})
}
