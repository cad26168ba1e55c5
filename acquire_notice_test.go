package holdfast_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// TestLostNoticeIsFoundByRefresh checks that a waiter finds a hand-over without its notice, by the
// next refresh. The first of the queue also refreshes when the lease in its way expires.
// INVARIANT I7.
func TestLostNoticeIsFoundByRefresh(t *testing.T) {
	tests := map[string]struct{ ttl, released, least, most time.Duration }{
		"released":        {time.Hour, 10 * time.Second, 10 * time.Second, 10*time.Second + 5*time.Second/3},
		"released at 1 s": {time.Hour, time.Second, time.Second, 5 * time.Second / 3},
		"expired":         {700 * time.Millisecond, time.Hour, 700 * time.Millisecond, 705 * time.Millisecond},
		"expired late":    {7 * time.Second, time.Hour, 7 * time.Second, 7005 * time.Millisecond},
	}
	for name, tt := range tests {
		runInBubble(t, name, func(t *testing.T) {
			engine := newFaulty()
			engine.deaf = true
			c := newClient(t, engine, nil)
			time.AfterFunc(tt.released, foreign(t, engine, "a", tt.ttl))
			start := time.Now()
			o := granted(t, enqueue(t.Context(), c, "a", nil))
			took := o.at.Sub(start)
			expect(t, took >= tt.least && took <= tt.most, "acquired after %s, want %s to %s", took, tt.least, tt.most)
			n := engine.count("acquire")
			expect(t, n == 1, "%d attempts, want 1", n)
			// The refresh has not renewed the lease: it ends with the place.
			whole := 4498 * time.Millisecond
			left := o.lease.Remaining()
			expect(t, left >= whole-5*time.Second/3 && left <= whole,
				"handed over for %s, want what was left of the place, which was renewed a third of its TTL ago at most", left)
			trusted(t, engine, o.lease, 20*time.Millisecond, 10*time.Second)
			o.lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	}
}

// TestNoticeAfterQuietRefreshes checks that a place lasts from its last refresh, even if the reply
// to that did not wake the waiter.
func TestNoticeAfterQuietRefreshes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		time.AfterFunc(time.Minute, foreign(t, engine, "a", time.Hour))
		start := time.Now()
		o := granted(t, enqueue(t.Context(), c, "a", nil))
		took := o.at.Sub(start)
		expect(t, took <= time.Minute+10*time.Millisecond && engine.count("acquire") == 1,
			"acquired after %s with %d attempts, want at once with the notice", took, engine.count("acquire"))
		trusted(t, engine, o.lease, 20*time.Millisecond, 10*time.Second)
		release(t, o.lease)
		nothingLeft(t, engine, "a")
	})
}

// TestOnlyTheFirstLooksAtExpiry checks that the waiters behind the first send no refresh when the
// lease in the way expires: they would all do so at once.
func TestOnlyTheFirstLooksAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		first, others := newClient(t, engine, nil), newFaultyOn(engine.Engine)
		c := newClient(t, others, nil)
		foreign(t, engine, "a", time.Second)
		head := enqueue(t.Context(), first, "a", nil)
		var waiting []<-chan outcome
		for range 20 {
			waiting = append(waiting, enqueue(t.Context(), c, "a", nil))
		}
		l := granted(t, head).lease
		time.Sleep(100 * time.Millisecond)
		n, m := engine.count("refresh"), others.count("refresh")
		expect(t, n == 1 && m == 0, "%d refreshes when the lease ran out, and %d by those behind; want 1 and 0", n, m)
		l.Release(t.Context())
		for _, w := range waiting {
			granted(t, w).lease.Release(t.Context())
		}
	})
}

// TestLostRepliesWhileQueued checks that lost replies lead to no second place and no second lease,
// and that a lease found later has the token of its grant. INVARIANTS I5 and I6.
func TestLostRepliesWhileQueued(t *testing.T) {
	for _, op := range []string{"acquire", "refresh"} {
		for _, deaf := range []bool{false, true} {
			runInBubble(t, fmt.Sprint(op, " deaf ", deaf), func(t *testing.T) {
				engine := newFaulty()
				engine.deaf = deaf
				c := newClient(t, engine, nil)
				for ms := 5; ms < 3000; ms += 50 {
					time.AfterFunc(time.Duration(ms)*time.Millisecond, foreign(t, engine, "a", time.Hour))
					engine.set(nil, fail(errLink, op))
					time.AfterFunc(2*time.Second, engine.heal)
					waiting := enqueue(t.Context(), c, "a", nil)
					time.Sleep(time.Millisecond)
					if lock, _ := engine.Engine.Inspect(t.Context(), "a"); len(lock.Queue) != 1 {
						t.Fatalf("%d places, want 1", len(lock.Queue))
					}
					o := granted(t, waiting)
					lock, _ := engine.Engine.Inspect(t.Context(), "a")
					need(t, len(lock.Holders) == 1 && lock.Holders[0].Token == o.lease.Token() && len(lock.Queue) == 0,
						"released after %d ms: the store has %+v, the lease token %d", ms, lock, o.lease.Token())
					time.Sleep(3 * time.Second)
					trusted(t, engine, o.lease, 20*time.Millisecond, time.Second)
					o.lease.Release(t.Context())
					nothingLeft(t, engine, "a")
				}
			})
		}
	}
}

// TestStaleNoticeIsNotBelieved checks that a notice of an older grant, which may be late or a copy,
// is never taken for a grant of the present place.
func TestStaleNoticeIsNotBelieved(t *testing.T) {
	// The reply to the first request is lost: its place is handed a lease, which expires unseen
	// before the request is repeated.
	runInBubble(t, "after a lost reply", func(t *testing.T) {
		engine := newFaulty()
		engine.deaf = true
		c := newClient(t, engine, nil)
		release := foreign(t, engine, "a", time.Hour)
		first := true
		engine.set(nil, func(context.Context, string) error {
			if !first {
				return nil
			}
			first = false
			time.Sleep(4 * time.Second) // the reply is on its way
			return errLink
		})
		waiting := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{TTL: time.Second})
		release()
		old, _ := engine.Engine.Inspect(t.Context(), "a")
		time.Sleep(2 * time.Second)
		next := foreign(t, engine, "a", time.Hour)
		time.Sleep(3 * time.Second) // the request is repeated
		engine.tell(driver.Notice{Token: old.Holders[0].Token})
		time.Sleep(time.Second)
		stillWaits(t, waiting)
		next()
		o := granted(t, waiting)
		expect(t, o.lease.Token() > old.Holders[0].Token, "token %d, want a new one", o.lease.Token())
		trusted(t, engine, o.lease, 20*time.Millisecond, 3*time.Second)
		o.lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
	// A waiter without replies for longer than its place lasts starts over with another lease ID.
	// The lease that was handed over to the old ID goes to the next waiter at once.
	runWithClient(t, "after a pause", nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		release := foreign(t, engine, "a", time.Hour)
		waiting := enqueue(t.Context(), c, "a", nil)
		old, _ := engine.Engine.Inspect(t.Context(), "a")
		engine.set(nil, fail(errLink, "refresh")) // the store still renews the place
		next := enqueue(t.Context(), newClient(t, engine.Engine, nil), "a", nil)
		time.Sleep(6 * time.Second)
		release()
		o := granted(t, next)
		took := time.Since(o.at)
		expect(t, took == 0, "the next came %s before now, want at once", took)
		stillWaits(t, waiting)
		engine.heal()
		lock, _ := engine.Engine.Inspect(t.Context(), "a")
		expect(t, len(lock.Queue) == 1 && lock.Queue[0].LeaseID != old.Queue[0].LeaseID, "queue = %+v, want one place of another lease ID", lock.Queue)
		o.lease.Release(t.Context())
		granted(t, waiting).lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// TestLateGrantIsCancelled checks that a grant whose reply arrives too late is cancelled at once.
func TestLateGrantIsCancelled(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(func(_ context.Context, op string) error {
			if op == "acquire" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		}, nil)
		for _, acquire := range []func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error){c.TryAcquire, c.Acquire} {
			wantErr(t, errOf(acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second})), holdfast.ErrUnavailable)
			synctest.Wait()
			nothingLeft(t, engine, "a")
		}
	})
}

// TestNoticeToLookIsFollowed checks that a waiter sends a refresh at once when a notice asks for
// one, for example because the lease in its way will end sooner.
func TestNoticeToLookIsFollowed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for range 10 {
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Hour, MinHold: time.Minute})
			start := time.Now()
			waiting := enqueue(t.Context(), c, "a", nil)
			time.Sleep(time.Minute - 100*time.Millisecond)
			l.Release(t.Context()) // the name stays closed for another 100 ms
			o := granted(t, waiting)
			took := o.at.Sub(start)
			expect(t, took >= time.Minute && took <= time.Minute+15*time.Millisecond, "acquired after %s, want at the end of MinHold, after 1m", took)
			o.lease.Release(t.Context())
		}
	})
}

// TestNoticeEndsBackoff checks that a notice ends the pause after an unanswered attempt, because
// that attempt may have created the place.
func TestNoticeEndsBackoff(t *testing.T) {
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 300 * time.Millisecond} {
		runWithClient(t, after.String(), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			release := foreign(t, engine, "a", time.Hour)
			engine.set(nil, fail(errLink, "acquire"))
			waiting := enqueue(t.Context(), c, "a", nil)
			time.Sleep(2 * time.Second) // the pauses are about 1 s now
			for n := engine.count("acquire"); engine.count("acquire") == n; {
				time.Sleep(time.Millisecond)
			}
			engine.heal()
			time.Sleep(after)
			start := time.Now()
			release()
			o := granted(t, waiting)
			if took := o.at.Sub(start); took > 10*time.Millisecond || after > 10*time.Millisecond && took != 0 {
				t.Errorf("acquired %s after the release", took)
			}
			o.lease.Release(t.Context())
		})
	}
}

// distant returns an engine without a queue on the given store, at this distance.
func distant(store *faulty, away time.Duration) plain {
	f := newFaultyOn(store.Engine)
	f.set(delay(away), delay(away))
	return plain{f}
}

// A runner is one worker that takes turns at a lock.
type runner struct {
	client *holdfast.Client
	turns  int
}

// race lets the runners take turns for length, each with work of up to work.
func race(t *testing.T, runners []*runner, work, length time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for i, r := range runners {
		random := rand.New(rand.NewPCG(uint64(i), 11))
		all.Go(func() {
			for {
				l, err := r.client.Acquire(ctx, "a", nil)
				if err != nil {
					return
				}
				r.turns++
				time.Sleep(time.Duration(random.Int64N(int64(work))) + 1)
				l.Release(t.Context())
			}
		})
	}
	all.Wait()
}

// shares fails t unless each runner had at least that percentage of the turns, and the lock was in
// use for that part of the time.
func shares(t *testing.T, runners []*runner, least int, work, length time.Duration, used float64) {
	t.Helper()
	turns, total := []int{}, 0
	for _, r := range runners {
		turns, total = append(turns, r.turns), total+r.turns
	}
	expect(t, slices.Min(turns)*100 >= total*least, "turns: %d; want %d %% for each at least", turns, least)
	part := float64(total) * float64(work/2) / float64(length)
	expect(t, part >= used, "turns: %d; the lock was in use for %.2f of the time, want %.2f", turns, part, used)
}

// TestTurnsWithoutQueue checks that on an engine without a queue each waiter gets its share of the
// turns, whatever its distance and whether or not the releasing client knows of it: for up to ten
// seconds the client may not. INVARIANT I7.
func TestTurnsWithoutQueue(t *testing.T) {
	for _, c := range []struct {
		work, step, length time.Duration
		least              int
		used               float64
	}{
		{2 * time.Millisecond, time.Millisecond / 2, time.Minute, 8, 0.25},
		{20 * time.Millisecond, 5 * time.Millisecond, 3 * time.Minute, 8, 0.25},
		{400 * time.Millisecond, time.Millisecond / 2, 3 * time.Minute, 12, 0.6},
		{20 * time.Second, time.Millisecond / 2, 20 * time.Minute, 12, 0.9},
	} {
		runInBubble(t, fmt.Sprintf("%s of work, %s apart", c.work, c.step), func(t *testing.T) {
			store, runners := newFaulty(), []*runner{}
			for i := range 3 {
				away := time.Duration(i)*c.step + 100*time.Microsecond
				runners = append(runners, &runner{client: newClient(t, distant(store, away), nil)})
			}
			race(t, runners, c.work, c.length)
			shares(t, runners, c.least, c.work, c.length, c.used)
		})
	}
}

// TestTurnsOfOneClient checks that the goroutines of one client take turns with one another and
// with another client.
func TestTurnsOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work, length = 100 * time.Millisecond, time.Minute
		store := newFaulty()
		near := newClient(t, distant(store, 100*time.Microsecond), nil)
		far := newClient(t, distant(store, time.Millisecond), nil)
		runners := []*runner{{client: near}, {client: near}, {client: near}, {client: far}}
		race(t, runners, work, length)
		shares(t, runners, 8, work, length, 0.5)
	})
}

// turn holds the lock for work, and returns how long it waited.
func turn(t *testing.T, c *holdfast.Client, work time.Duration, opts *holdfast.AcquireOptions) time.Duration {
	t.Helper()
	start := time.Now()
	l, err := c.Acquire(t.Context(), "a", opts)
	must(t, err)
	waited := time.Since(start)
	time.Sleep(work)
	l.Release(t.Context())
	return waited
}

// contended returns a client that was refused the lock a moment ago, and then held it for 100 ms.
// So its next turn begins with a pause.
func contended(t *testing.T) *holdfast.Client {
	engine := newFaulty()
	c := newClient(t, plain{engine}, nil)
	time.AfterFunc(50*time.Millisecond, foreign(t, engine, "a", time.Hour))
	turn(t, c, 100*time.Millisecond, nil)
	return c
}

// TestTurnsAfterRivalsHaveGone checks that the pauses end when no other client waits any more.
func TestTurnsAfterRivalsHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contended(t)
		var waited time.Duration
		for range 100 {
			waited += turn(t, c, 30*time.Millisecond, nil)
		}
		expect(t, waited >= 100*time.Millisecond && waited <= 1250*time.Millisecond, "pauses of %s in all; want 100 ms to 1.25 s", waited)
		waited = turn(t, c, 0, nil)
		expect(t, waited <= 0, "still a pause, of %s", waited)
	})
}

// TestTurnsPauseWithinTheWait checks that only calls that may wait pause, and for no longer than
// their wait.
func TestTurnsPauseWithinTheWait(t *testing.T) {
	for what, check := range map[string]func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration{
		"it pauses": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			return max(0, 50*time.Millisecond-turn(t, c, 0, nil))
		},
		"TryAcquire": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			mustAcquire(t, c, "a", nil).Release(context.Background())
			return time.Since(start)
		},
		"a short wait": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			return max(0, turn(t, c, 0, &holdfast.AcquireOptions{MaxWait: 10 * time.Millisecond})-5*time.Millisecond)
		},
		"a cancelled context": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			wantErr(t, errOf(c.Acquire(ctx, "a", nil)), context.Canceled)
			return time.Since(start) - time.Millisecond
		},
		"two seconds later": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			time.Sleep(2 * time.Second)
			turn(t, c, 50*time.Millisecond, nil)
			return turn(t, c, 0, nil)
		},
	} {
		runInBubble(t, what, func(t *testing.T) {
			c := contended(t)
			over := check(t, c, time.Now())
			expect(t, over == 0, "%s too much, or too little", over)
		})
	}
}
