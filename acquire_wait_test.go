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

// INVARIANT I7: waiters are served in the order in which the store saw them.
func TestWaitersAreServedInOrder(t *testing.T) {
	for _, clients := range []int{1, 3} {
		t.Run(fmt.Sprint(clients, " clients"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				if !slices.IsSorted(served) || len(served) != 30 {
					t.Errorf("served in the order %d", served)
				}
			})
		})
	}
}

// A short wait for short work costs two requests, as no wait does: no
// refresh, no confirmation.
func TestAcquireCosts(t *testing.T) {
	check := func(ttl, wait, work time.Duration) {
		t.Run(fmt.Sprint("TTL ", ttl, " wait ", wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				if wait > 0 {
					time.AfterFunc(wait, foreign(t, engine, "a", time.Hour))
				}
				start := time.Now()
				l, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != wait {
					t.Errorf("acquired after %s, want at the release, after %s", took, wait)
				}
				time.Sleep(work)
				l.Release(t.Context())
				if got := fmt.Sprint(engine.calls); got != "map[acquire:1 release:1]" {
					t.Errorf("requests = %s, want 1 acquire and 1 release", got)
				}
			})
		})
	}
	for _, wait := range []time.Duration{0, 1, 700 * time.Millisecond, 1490 * time.Millisecond} {
		for _, ttl := range []time.Duration{5 * time.Second, 30 * time.Second, time.Hour} {
			check(ttl, wait, 99*time.Millisecond)
		}
		check(500*time.Millisecond, wait/10, 90*time.Millisecond)
	}
}

// A caller that does not wait asks for no place, and does not overtake those
// that have one.
func TestTryAcquireDoesNotBarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", semaphore(3, 2))
		waiting := enqueue(t.Context(), c, "a", semaphore(3, 3))
		_, err := c.TryAcquire(t.Context(), "a", semaphore(3, 1)) // would fit beside the 2
		wantErr(t, err, holdfast.ErrHeld)
		if lock, _ := engine.Inspect(t.Context(), "a"); len(lock.Queue) != 1 || lock.Queue[0].Permits != 3 {
			t.Errorf("queue = %+v, want the waiter only", lock.Queue)
		}
		l.Release(t.Context())
		granted(t, waiting).lease.Release(t.Context())
	})
}

// Whatever the instant at which a waiter gives up, or a holder its lease,
// nothing is left behind. INVARIANT I5.
func TestWaiterLeavesNothing(t *testing.T) {
	for _, outage := range []bool{false, true} {
		t.Run(fmt.Sprint("replies get lost ", outage), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
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
					if t.Failed() {
						t.Fatalf("given up after %d ms", ms)
					}
				}
				if !outage && got < 150 {
					t.Errorf("%d leases handed over, want one whenever 100 ms or more were left", got)
				}
			})
		})
	}
}

// A waiter gives its place up at once.
func TestWaiterThatGivesUpLetsTheNextPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", shared)
		start := time.Now()
		writer := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Wait: 3 * time.Second})
		reader := enqueue(t.Context(), c, "a", shared)
		o := granted(t, reader)
		if took := o.at.Sub(start); took != 3*time.Second {
			t.Errorf("the reader passed after %s, want when the writer before it gave up, after 3s", took)
		}
		refused := <-writer
		wantErr(t, refused.err, holdfast.ErrHeld)
		if took := refused.at.Sub(start); took != 3*time.Second {
			t.Errorf("the writer gave up after %s, want 3s", took)
		}
		l.Release(t.Context())
		o.lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// Close ends those who wait, at once, and takes their places away.
func TestCloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		foreign(t, engine, "a", time.Hour)
		first, second := enqueue(t.Context(), c, "a", nil), enqueue(t.Context(), c, "a", nil)
		time.Sleep(time.Minute)
		start := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if lock, _ := engine.Inspect(t.Context(), "a"); len(lock.Queue) != 0 {
			t.Errorf("%d places stayed behind", len(lock.Queue))
		}
		for _, waiting := range []<-chan outcome{first, second} {
			o := <-waiting
			wantErr(t, o.err, holdfast.ErrClosed)
			if took := o.at.Sub(start); took != 0 {
				t.Errorf("ended %s after Close", took)
			}
		}
	})
}

// A lease that is granted while Close is under way is given back, not left
// without its keep-alive.
func TestCloseMeetsGrant(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprint("several ", all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c, err := holdfast.New(engine, nil)
				if err != nil {
					t.Fatal(err)
				}
				engine.set(nil, delay(time.Second))
				done := make(chan error, 1)
				go func() {
					if all {
						_, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
						done <- err
					} else {
						_, err := c.Acquire(t.Context(), "a", nil)
						done <- err
					}
				}()
				time.Sleep(500 * time.Millisecond)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				nothingLeft(t, engine, "a", "b")
				wantErr(t, <-done, holdfast.ErrClosed)
			})
		})
	}
}

// An outage while queued costs at most the place: who waited goes on, and is
// handed the lock at once as before.
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				release := foreign(t, engine, "a", time.Hour)
				long := tt.outage > 5*time.Second // longer than a place lasts
				if long {
					engine.set(nil, fail(errLink, "acquire")) // forgotten with the place
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
				if len(after.Queue) != 1 {
					t.Fatalf("%d places 3 s after the outage, want 1", len(after.Queue))
				}
				kept := after.Queue[0].LeaseID == before.Queue[0].LeaseID
				if kept == long {
					t.Errorf("place kept: %t, want %t", kept, !long)
				}
				start, refreshes := time.Now(), engine.count("refresh")
				release()
				o := granted(t, waiting)
				if took := o.at.Sub(start); took != 0 || engine.count("refresh") != refreshes {
					t.Errorf("acquired %s after the release, with %d refreshes; want by news", took, engine.count("refresh")-refreshes)
				}
				o.lease.Release(t.Context())
				nothingLeft(t, engine, "a")
			})
		})
	}
}

// Without a queue in the store Acquire polls, at a bounded rate.
func TestPollingWithoutQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		time.AfterFunc(time.Minute, foreign(t, engine, "a", time.Hour))
		start := time.Now()
		l := granted(t, enqueue(t.Context(), c, "a", nil)).lease
		if took := time.Since(start); took < time.Minute || took > time.Minute+250*time.Millisecond {
			t.Errorf("acquired after %s, want within 250 ms after the release", took)
		}
		if n := engine.count("acquire"); n < 240 || n > 500 {
			t.Errorf("%d requests in a minute, want 4 to 8 in a second", n)
		}

		waiting := enqueue(t.Context(), c, "a", nil)
		time.Sleep(time.Second)
		engine.set(fail(driver.ErrUnavailable, "acquire"), nil) // is ridden out, too
		time.Sleep(time.Minute)
		engine.heal()
		l.Release(t.Context())
		l = granted(t, waiting).lease
		l.Release(t.Context())

		time.Sleep(time.Second) // others have had their chance
		foreign(t, engine, "a", 100*time.Millisecond)
		start = time.Now()
		l = granted(t, enqueue(t.Context(), c, "a", nil)).lease
		if took := time.Since(start); took < 100*time.Millisecond || took > 125*time.Millisecond {
			t.Errorf("taken over after %s, want at the expiry, after 100ms", took)
		}
		l.Release(t.Context())
	})
}
