package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// TestWaitersAreServedInOrder checks that waiters are served in the order in which the store
// received their requests. INVARIANT I7.
func TestWaitersAreServedInOrder(t *testing.T) {
	for _, clients := range []int{1, 3} {
		runInBubble(t, fmt.Sprint(clients, " clients"), func(t *testing.T) {
			engine := newFaulty()
			var cs []*holdfast.Client
			for range clients {
				cs = append(cs, newClient(t, engine, nil))
			}
			release := foreign(t, engine, "a", time.Hour)
			var wg sync.WaitGroup
			var served []int
			for i := range 30 {
				waiting := enqueue(t.Context(), cs[i%clients], "a", nil)
				wg.Go(func() {
					l := granted(t, waiting).lease
					served = append(served, i)
					time.Sleep(time.Duration(i%7) * time.Second)
					l.Release(t.Context())
				})
				time.Sleep(time.Duration(i*37%11) * 100 * time.Millisecond)
			}
			release()
			wg.Wait()
			expect(t, slices.IsSorted(served) && len(served) == 30, "served in the order %d", served)
		})
	}
}

// TestWaiterLeavesNothing checks that nothing is left in the store whenever a waiter gives up, or a
// holder releases its lease. INVARIANT I5.
func TestWaiterLeavesNothing(t *testing.T) {
	for _, outage := range []bool{false, true} {
		runWithClient(t, fmt.Sprint("replies get lost ", outage), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			got := 0
			for ms := range 260 {
				release := foreign(t, engine, "a", time.Hour)
				time.AfterFunc(100*time.Millisecond, release)
				engine.set(delay(7*time.Millisecond), func(_ context.Context, op string) error {
					time.Sleep(7 * time.Millisecond)
					if outage && (op == "acquire" || op == "refresh") {
						return errLink
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				waiting := enqueue(ctx, c, "a", nil)
				<-ctx.Done()
				cancel()
				o := <-waiting
				if o.err == nil {
					got++
					o.lease.Release(t.Context()) // before, during and after the confirmation
				} else {
					wantErr(t, o.err, context.DeadlineExceeded)
				}
				engine.heal()
				time.Sleep(time.Second)
				release()
				nothingLeft(t, engine, "a")
				need(t, !t.Failed(), "given up after %d ms", ms)
			}
			if !outage && got < 150 {
				t.Errorf("%d leases handed over, want one whenever 100 ms or more were left", got)
			}
		})
	}
}

// TestWaiterThatGivesUpLetsTheNextPass checks that a waiter that gives up removes its place at
// once.
func TestWaiterThatGivesUpLetsTheNextPass(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", shared)
		start := time.Now()
		writer := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: 3 * time.Second})
		reader := enqueue(t.Context(), c, "a", shared)
		o := granted(t, reader)
		took := o.at.Sub(start)
		expect(t, took == 3*time.Second, "the reader passed after %s, want when the writer before it gave up, after 3s", took)
		refused := <-writer
		wantErr(t, refused.err, holdfast.ErrHeld)
		took = refused.at.Sub(start)
		expect(t, took == 3*time.Second, "the writer gave up after %s, want 3s", took)
		l.Release(t.Context())
		o.lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// TestWaiterSurvivesOutage checks that a queued waiter loses at most its place in an outage. It
// continues to wait, and a notice hands it the lock at once.
func TestWaiterSurvivesOutage(t *testing.T) {
	refused, unanswered := fail(driver.ErrUnavailable, "acquire", "refresh"), hang("acquire", "refresh")
	tests := map[string]struct {
		fault  func(context.Context, string) error
		outage time.Duration
	}{
		"refused for 2 s":     {refused, 2 * time.Second},
		"refused for 20 s":    {refused, 20 * time.Second},
		"refused for 10 m":    {refused, 10 * time.Minute},
		"unanswered for 1 s":  {unanswered, time.Second},
		"unanswered for 20 s": {unanswered, 20 * time.Second},
	}
	for name, tt := range tests {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			release := foreign(t, engine, "a", time.Hour)
			long := tt.outage > 5*time.Second // longer than a place lasts
			if long {
				engine.set(nil, fail(errLink, "acquire")) // a lost reply, which no longer matters once the place is lost
			}
			waiting := enqueue(t.Context(), c, "a", nil)
			engine.heal()
			time.Sleep(3 * time.Second)
			before, _ := engine.Engine.Inspect(t.Context(), "a")
			engine.set(tt.fault, nil)
			time.Sleep(tt.outage)
			engine.heal()
			time.Sleep(3 * time.Second)
			after, _ := engine.Engine.Inspect(t.Context(), "a")
			need(t, len(after.Queue) == 1, "%d places 3 s after the outage, want 1", len(after.Queue))
			kept := after.Queue[0].LeaseID == before.Queue[0].LeaseID
			expect(t, kept != long, "place kept: %t, want %t", kept, !long)
			start, refreshes := time.Now(), engine.count("refresh")
			release()
			o := granted(t, waiting)
			took := o.at.Sub(start)
			expect(t, took == 0 && engine.count("refresh") == refreshes,
				"acquired %s after the release, with %d refreshes; want by a notice", took, engine.count("refresh")-refreshes)
			o.lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	}
}

// TestPollingWithoutQueue checks that Acquire polls at a bounded rate if the store has no queue.
func TestPollingWithoutQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		time.AfterFunc(time.Minute, foreign(t, engine, "a", time.Hour))
		start := time.Now()
		l := granted(t, enqueue(t.Context(), c, "a", nil)).lease
		took := time.Since(start)
		expect(t, took >= time.Minute && took <= time.Minute+250*time.Millisecond, "acquired after %s, want within 250 ms after the release", took)
		n := engine.count("acquire")
		expect(t, n >= 240 && n <= 500, "%d requests in a minute, want 4 to 8 in a second", n)

		waiting := enqueue(t.Context(), c, "a", nil)
		time.Sleep(time.Second)
		engine.set(fail(driver.ErrUnavailable, "acquire"), nil) // an outage does not end the wait
		time.Sleep(time.Minute)
		engine.heal()
		l.Release(t.Context())
		l = granted(t, waiting).lease
		l.Release(t.Context())

		time.Sleep(time.Second) // no pause for rivals any more
		foreign(t, engine, "a", 100*time.Millisecond)
		start = time.Now()
		l = granted(t, enqueue(t.Context(), c, "a", nil)).lease
		took = time.Since(start)
		expect(t, took >= 100*time.Millisecond && took <= 125*time.Millisecond, "taken over after %s, want at the expiry, after 100ms", took)
		l.Release(t.Context())
	})
}

// A looker has an OnWait that records each state.
type looker struct {
	start    time.Time
	mu       sync.Mutex // guards the rest
	reported []holdfast.WaitState
}

func (l *looker) onWait(s holdfast.WaitState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, s)
}

// all returns the states that l has received.
func (l *looker) all() []holdfast.WaitState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reported)
}

// waits returns options with the OnWait of l.
func (l *looker) waits() *holdfast.AcquireOptions {
	l.start = time.Now()
	return &holdfast.AcquireOptions{OnWait: l.onWait}
}

// heard returns the places that l received, each with "outage" if the store did not answer.
func (l *looker) heard() (s string) {
	for _, w := range l.all() {
		s += fmt.Sprintf("%d ", w.Place)
		if w.Outage != nil {
			s += "outage "
		}
	}
	return s
}

// TestOnWaitTellsPlaces checks that OnWait receives the place when the wait begins and each time
// that it improves, and nothing when only time has passed.
func TestOnWaitTellsPlaces(t *testing.T) {
	inBubble(t, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", PID: 812}}, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		first := mustAcquire(t, c, "a", nil)
		ahead := enqueue(t.Context(), c, "a", nil)
		var l looker
		last := enqueue(t.Context(), c, "a", l.waits())
		need(t, len(l.all()) == 1 && l.all()[0].Place == 2 && l.all()[0].Holder.Host == "web-3" && l.all()[0].Name == "a" && l.all()[0].Waited == 0,
			"reported %+v at the beginning", l.all())
		time.Sleep(time.Minute) // some thirty refreshes
		expect(t, len(l.all()) == 1, "reported %d times while nothing happened: %+v", len(l.all()), l.all())
		first.Release(t.Context())
		second := granted(t, ahead).lease
		time.Sleep(10 * time.Second)
		got := l.heard()
		expect(t, got == "2 1 " && l.all()[1].Waited >= time.Minute, "reported the places %s(%+v), want 2 and 1", got, l.all())
		second.Release(t.Context())
		granted(t, last).lease.Release(t.Context())
		expect(t, len(l.all()) == 2, "reported the end of the wait: %+v", l.all()[2:])
	})
}

// A saying engine gives the reply that say has set last.
type saying struct {
	*scripted
	mu sync.Mutex // guards held
}

func (s *saying) say(b driver.Blocker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = b
}

func (s *saying) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripted.Acquire(ctx, req)
}

func (s *saying) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripted.Refresh(ctx, reqs)
}

// TestOnWaitTellsHolder checks that OnWait receives what the store reports of the lease in the way,
// corrected for the time since the reply.
func TestOnWaitTellsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &saying{scripted: &scripted{faulty: newFaulty()}}
		c := newClient(t, store, nil)
		held := driver.Blocker{Place: 1, Queue: 4, Holder: holdfast.Holder{Host: "web-3"}, Since: 3 * time.Hour, ExpiresIn: time.Hour}
		store.say(held)
		var l looker
		ctx, cancel := context.WithCancel(t.Context())
		done := enqueue(ctx, c, "a", l.waits())
		steps := []func(b *driver.Blocker){
			func(b *driver.Blocker) { b.Since += time.Hour },                          // no change
			func(b *driver.Blocker) { b.ExpiresIn += time.Hour },                      // no change: the lease was renewed
			func(b *driver.Blocker) { b.Queue++ },                                     // a change
			func(b *driver.Blocker) { b.Since = time.Minute },                         // the same holder has acquired it again
			func(b *driver.Blocker) { b.Holder.Labels = map[string]string{"a": "b"} }, // another holder
			func(b *driver.Blocker) { b.Released = true },
			func(b *driver.Blocker) { b.Foreign = true },
		}
		want := 1
		for i, step := range steps {
			step(&held)
			store.say(held)
			time.Sleep(10 * time.Second)
			if i >= 2 {
				want++
			}
			need(t, len(l.all()) == want, "after step %d OnWait was called %d times, want %d: %+v", i, len(l.all()), want, l.all())
		}
		s := l.all()[len(l.all())-1]
		expect(t, s.Queue == 5 && s.Place == 1 && s.Released && s.Foreign && s.Since >= time.Minute && s.Holder.Labels["a"] == "b" && s.ExpiresIn <= 2*time.Hour,
			"reported %+v", s)
		cancel()
		wantErr(t, (<-done).err, context.Canceled)
	})
}

// TestOnWaitTellsOutage checks that OnWait receives the beginning and the end of an outage, even of
// one that began before the wait.
func TestOnWaitTellsOutage(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		runWithClient(t, fmt.Sprint("from the beginning ", atOnce), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			release := foreign(t, engine, "a", time.Hour)
			dead := fail(driver.ErrUnavailable, "acquire", "refresh")
			want := "1 1 outage 1 "
			if atOnce {
				engine.set(dead, nil)
				want = "0 outage 1 "
			}
			var l looker
			opts := l.waits()
			opts.MaxWait = time.Hour
			done := enqueue(t.Context(), c, "a", opts)
			engine.set(dead, nil)
			time.Sleep(4500 * time.Millisecond) // less than the place lasts
			engine.heal()
			time.Sleep(20 * time.Second)
			got := l.heard()
			expect(t, got == want, "reported %q, want %q: %+v", got, want, l.all())
			release()
			granted(t, done).lease.Release(t.Context())
		})
	}
}

// TestOnWaitWithoutWait checks that OnWait is not called without a wait.
func TestOnWaitWithoutWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		var l looker
		lease, err := c.Acquire(t.Context(), "a", l.waits())
		must(t, err)
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", l.waits())), holdfast.ErrHeld)
		lease.Release(t.Context())
		expect(t, len(l.all()) == 0, "reported %+v", l.all())
	})
}

// TestOnWaitPanics checks that an OnWait that panics leaves nothing behind, and that Close does not
// wait for it.
func TestOnWaitPanics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		release := foreign(t, engine, "a", time.Hour)
		opts := &holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { panic("the screen is gone") }}
		func() {
			defer func() {
				r := recover()
				expect(t, r == "the screen is gone", "recovered %v", r)
			}()
			_, _ = c.Acquire(t.Context(), "a", opts)
		}()
		synctest.Wait()
		release()
		nothingLeft(t, engine, "a")
	})
}

// TestOnWaitIsSlow checks that the place is kept while OnWait runs, and that a lock granted
// meanwhile leads to a valid lease.
func TestOnWaitIsSlow(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		release := foreign(t, engine, "a", time.Hour)
		done := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { time.Sleep(20 * time.Second) }})
		time.AfterFunc(10*time.Second, release)
		l := granted(t, done).lease
		trusted(t, engine, l, time.Second, time.Minute)
		l.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// TestOnWaitOfAll checks that AcquireAll reports for which of its locks it waits.
func TestOnWaitOfAll(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		time.AfterFunc(time.Second, foreign(t, engine, "a", time.Hour))
		time.AfterFunc(2*time.Second, foreign(t, engine, "b", time.Hour))
		var l looker
		ls, err := c.AcquireAll(t.Context(), []string{"b", "a"}, l.waits())
		must(t, err)
		ls.Release(t.Context())
		expect(t, len(l.all()) == 2 && l.all()[0].Name == "a" && l.all()[1].Name == "b" && l.all()[1].Waited == time.Second, "reported %+v", l.all())
	})
}
