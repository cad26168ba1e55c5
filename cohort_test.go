package holdfast_test

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
)

// cohorts are the options of a client whose callers share a place.
var cohorts = &holdfast.Options{Cohorts: true}

// queueUp starts n callers, one after the other.
func queueUp(c *holdfast.Client, n int, opts *holdfast.AcquireOptions) (waiting []<-chan outcome) {
	for range n {
		waiting = append(waiting, enqueue(context.Background(), c, "a", opts))
	}
	return waiting
}

// places returns how many places the queue of the store has.
func places(t *testing.T, f *faulty) int {
	t.Helper()
	lock, err := f.Engine.Inspect(t.Context(), "a")
	must(t, err)
	return lock.QueueLength
}

func release(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	must(t, l.Release(t.Context()))
	synctest.Wait()
}

// ended returns the outcome of a call, which must end within an hour.
func ended(t *testing.T, done <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(time.Hour):
		t.Fatal("it waits for an hour already")
		return outcome{}
	}
}

// soon returns the lease of a caller, which must be served within an hour.
func soon(t *testing.T, done <-chan outcome) *holdfast.Lease {
	t.Helper()
	o := ended(t, done)
	must(t, o.err)
	return o.lease
}

// TestCohortTakesTurns checks that the callers of one client have one place, and turns in the order
// of their calls. A lease serves four turns, each with its own token, and the next lease has a
// greater token. INVARIANT I2, I7.
func TestCohortTakesTurns(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		free := foreign(t, engine, "a", time.Hour)
		waiting := queueUp(c, 9, nil)
		n := places(t, engine)
		need(t, n == 1 && engine.count("acquire") == 1, "9 callers have %d places, and sent %d requests; want 1", n, engine.count("acquire"))
		free()
		var before *holdfast.Lease
		for i, w := range waiting {
			l := soon(t, w)
			_ = l.Context().Done() // creates the channel before the turn ends
			if before != nil {
				expect(t, before.Context().Err() != nil && !before.Valid(), "turn %d began, and the one before goes on", i)
				switch same := l.ID() == before.ID(); {
				case same != (i%4 != 0):
					t.Errorf("turn %d has the lease ID of the one before: %t", i, same)
				case same && l.Token() != before.Token()+1, l.Token() <= before.Token():
					t.Errorf("turn %d has token %d after %d", i, l.Token(), before.Token())
				}
			}
			held := holders(t, engine.Engine, "a")
			expect(t, held == 1 && l.Valid() && l.Context().Err() == nil, "turn %d: %d leases in the store, valid %t", i, held, l.Valid())
			released := engine.count("release")
			release(t, l)
			sent := engine.count("release") - released
			expect(t, (sent == 1) == (i%4 == 3 || i == 8), "the end of turn %d has sent %d releases", i, sent)
			before = l
		}
		nothingLeft(t, engine, "a")
	})
}

// TestCohortCost checks that, while no other client wants the lock, four turns cost one acquire and
// one release, and no request finds the lock held.
func TestCohortCost(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(func(_ context.Context, op string) error {
			if op == "release" {
				time.Sleep(time.Millisecond)
			}
			return nil
		}, func(_ context.Context, op string) error {
			n := places(t, engine)
			expect(t, n == 0, "after %s there are %d places", op, n)
			return nil
		})
		waiting := queueUp(c, 16, nil)
		for _, w := range waiting {
			release(t, soon(t, w))
		}
		a, r := engine.count("acquire"), engine.count("release")
		expect(t, a == 4 && r == 4 && engine.count("refresh") <= 0,
			"16 turns cost %d acquires, %d releases and %d refreshes; want 4, 4 and 0", a, r, engine.count("refresh"))
	})
}

// TestCohortTokensAreReserved checks that the tokens of turns stay below those of the next lease
// even if the store's clock is behind. Only the tokens that a grant reserves ensure this.
// INVARIANT I2.
func TestCohortTokensAreReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, cohorts), newClient(t, newFaultyOn(engine.Engine), nil)
		first := mustAcquire(t, other, "a", nil)
		release(t, first)
		ahead := mustAcquire(t, other, "a", &holdfast.AcquireOptions{MinToken: first.Token() + 1e9})
		waiting := queueUp(c, 4, nil)
		next := enqueue(t.Context(), other, "a", nil)
		release(t, ahead)
		last := ahead
		for i, w := range append(waiting, next) {
			l := soon(t, w)
			expect(t, l.Token() > last.Token(), "turn %d has token %d after %d", i, l.Token(), last.Token())
			release(t, l)
			last = l
		}
	})
}

// TestCohortLetsOthersGo checks that another client's request comes after four turns, and the rest
// of the cohort queues behind it. INVARIANT I7.
func TestCohortLetsOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, cohorts), newClient(t, newFaultyOn(engine.Engine), nil)
		free := foreign(t, engine, "a", time.Hour)
		waiting := queueUp(c, 6, nil)
		theirs := enqueue(t.Context(), other, "a", nil)
		free()
		for _, w := range waiting[:4] {
			release(t, soon(t, w))
		}
		release(t, soon(t, theirs))
		for _, w := range waiting[4:] {
			release(t, soon(t, w))
		}
	})
}

// TestCohortTurnsEndInTime checks that no turn begins 20 ms after the grant. From then on the
// callers that still wait have a place in the store, however long the present turn takes.
// INVARIANT I7.
func TestCohortTurnsEndInTime(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		waiting := queueUp(c, 4, nil)
		first := soon(t, waiting[0])
		time.Sleep(19 * time.Millisecond)
		n := places(t, engine)
		expect(t, n == 0, "%d places after 19 ms", n)
		release(t, first)
		second := soon(t, waiting[1])
		expect(t, second.ID() == first.ID(), "no turn was handed on after 19 ms")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		n = places(t, engine)
		expect(t, n == 1, "%d places after 20 ms, want 1", n)
		late := enqueue(t.Context(), c, "a", nil)
		release(t, second)
		third := soon(t, waiting[2])
		expect(t, third.ID() != first.ID(), "a turn was handed on after 20 ms")
		time.Sleep(time.Hour) // too late for another turn
		for _, w := range append(waiting[3:], late) {
			release(t, third)
			third = soon(t, w)
		}
		release(t, third)
		nothingLeft(t, engine, "a")
	})
}

// TestCohortJoinedLate checks that a caller queues in the store at once if no turn can follow.
func TestCohortJoinedLate(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		first := soon(t, enqueue(t.Context(), c, "a", nil))
		time.Sleep(time.Second)
		waiting := queueUp(c, 2, nil)
		n := places(t, engine)
		expect(t, n == 1, "%d places, want 1", n)
		release(t, first)
		for _, w := range waiting {
			release(t, soon(t, w))
		}
		nothingLeft(t, engine, "a")
	})
}

// TestCohortIsTrustedNoLongerThanTheLeaseLasts checks that no turn is trusted for longer than the
// store keeps the lease, however short its TTL and however slow the store. INVARIANT I3.
func TestCohortIsTrustedNoLongerThanTheLeaseLasts(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, 25 * time.Millisecond, 300 * time.Millisecond, 30 * time.Second} {
		for _, slow := range [][2]time.Duration{{0, 0}, {4, 0}, {0, 4}, {7, 8}} {
			runWithClient(t, fmt.Sprint("TTL ", ttl, " delays ", slow), cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
				for _, work := range []time.Duration{0, 3, 7, 12} {
					free := foreign(t, engine, "a", time.Hour)
					engine.set(delay(slow[0]*time.Millisecond), delay(slow[1]*time.Millisecond))
					opts := &holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff}
					waiting := queueUp(c, 6, opts)
					time.Sleep(997 * time.Millisecond)
					free()
					for _, w := range waiting {
						o := ended(t, w)
						if errors.Is(o.err, holdfast.ErrUnavailable) { // too slow for the TTL
							continue
						}
						l := o.lease
						keepsAsLong(t, engine, l)
						time.Sleep(work * time.Millisecond)
						keepsAsLong(t, engine, l)
						_ = l.Release(t.Context())
					}
					engine.heal()
					time.Sleep(2 * time.Minute)
					nothingLeft(t, engine, "a")
				}
			})
		}
	}
}

// keepsAsLong fails t if the store may end the lease while its holder trusts it.
func keepsAsLong(t *testing.T, engine *faulty, l *holdfast.Lease) {
	t.Helper()
	if !l.Valid() {
		return
	}
	lock, err := engine.Engine.Inspect(t.Context(), "a")
	must(t, err)
	for _, h := range lock.Holders {
		if h.LeaseID == l.ID() && h.Token <= l.Token() && l.Token() < h.Token+driver.TokenRange {
			expect(t, h.ExpiresIn >= l.Remaining(), "trusted for %s, kept for %s", l.Remaining(), h.ExpiresIn)
			return
		}
	}
	t.Errorf("token %d is valid, and the store has %v", l.Token(), lock.Holders)
}

// TestCohortLeavesTurnsTime checks that a lease is not handed on with less than half of its TTL,
// which the next caller would lose at once.
func TestCohortLeavesTurnsTime(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for work, handedOn := range map[time.Duration]bool{2 * time.Millisecond: true, 5 * time.Millisecond: false} {
			waiting := queueUp(c, 2, &holdfast.AcquireOptions{TTL: 10 * time.Millisecond, KeepAlive: holdfast.KeepAliveOff})
			first := soon(t, waiting[0])
			time.Sleep(work)
			release(t, first)
			next := soon(t, waiting[1])
			expect(t, (next.ID() == first.ID()) == handedOn, "after %s of 10 ms it was handed on: %t", work, !handedOn)
			release(t, next)
		}
	})
}

// TestCohortPausedBetweenTurns checks that after a pause of the process the next turn does not
// begin with an expired lease: its caller gets another lease. INVARIANT I3.
func TestCohortPausedBetweenTurns(t *testing.T) {
	for _, paused := range []int64{1, 2} { // before the release, or before the next turn begins
		runWithClient(t, fmt.Sprint("at look ", paused), cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			var looks atomic.Int64
			looks.Store(-1 << 40)
			holdfast.SetBootClock(c, func() time.Duration {
				if looks.Add(1) >= paused {
					return time.Hour
				}
				return 0
			})
			first := soon(t, enqueue(t.Context(), c, "a", nil))
			next := enqueue(t.Context(), c, "a", nil)
			looks.Store(0)
			err := first.Release(t.Context())
			lost := errors.Is(err, holdfast.ErrLost)
			expect(t, lost == (paused == 1), "Release = %v", err)
			l := soon(t, next)
			expect(t, l.Valid() && l.ID() != first.ID(), "the next caller has a valid lease: %t, the old one: %t", l.Valid(), l.ID() == first.ID())
			release(t, l)
			nothingLeft(t, engine, "a")
		})
	}
}

// TestCohortAwaitsRenewals checks that a lease is not handed on while a renewal is under way, but
// released after it. INVARIANT I9.
func TestCohortAwaitsRenewals(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		first := soon(t, enqueue(t.Context(), c, "a", nil))
		next := enqueue(t.Context(), c, "a", nil)
		extending := neverDuringRenewal(t, engine, "release")
		go func() { _ = first.Extend(t.Context(), time.Minute) }()
		synctest.Wait()
		need(t, extending.Load(), "no renewal is under way")
		release(t, first)
		l := soon(t, next)
		expect(t, l.ID() != first.ID(), "the lease was handed on while its renewal was under way")
	})
}

// TestCohortMaxWait checks that a caller whose MaxWait ends in a cohort gets a HeldError.
func TestCohortMaxWait(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		foreign(t, engine, "a", time.Hour)
		waiting := queueUp(c, 3, &holdfast.AcquireOptions{MaxWait: time.Second})
		for _, w := range waiting {
			o := ended(t, w)
			var held *holdfast.HeldError
			expect(t, errors.As(o.err, &held) && held.ExpiresIn >= 58*time.Minute && held.Waited == time.Second, "%v after %v", o.err, held)
		}
	})
}

// TestCohortKnowsRenewals checks that a caller in a cohort learns of renewals of the lease in the
// way.
func TestCohortKnowsRenewals(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		other := newClient(t, newFaultyOn(engine.Engine), nil)
		l, err := other.Acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: 10 * time.Second})
		must(t, err)
		waiting := append(queueUp(c, 1, nil), queueUp(c, 1, &holdfast.AcquireOptions{MaxWait: time.Minute})...)
		var held *holdfast.HeldError
		o := ended(t, waiting[1])
		expect(t, errors.As(o.err, &held) && held.ExpiresIn >= 3*time.Second, "%v, want a lease that was renewed not long ago", o.err)
		release(t, l)
		release(t, soon(t, waiting[0]))
	})
}

// TestCohortLeaderLosesAnotherLease checks that the others keep their place when the loss of
// another lease ends their leader's context, and that only the leader gets that error.
func TestCohortLeaderLosesAnotherLease(t *testing.T) {
	inBubble(t, cohorts, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		free := foreign(t, engine, "a", time.Hour)
		outer := mustAcquire(t, c, "outer", &holdfast.AcquireOptions{MaxHold: time.Minute})
		leader := enqueue(outer.Context(), c, "a", nil)
		waiting := queueUp(c, 1, nil)
		wantErr(t, ended(t, leader).err, holdfast.ErrMaxHold)
		free()
		release(t, soon(t, waiting[0]))
		_ = outer.Release(t.Context())
	})
}
