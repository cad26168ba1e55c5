package holdfast_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// INVARIANT I7: messages only speed waiting up. Without them the hand-over is
// found by the next refresh or, by the first of the queue, when the lease in
// the way runs out.
func TestLostNewsIsFoundByRefresh(t *testing.T) {
	tests := map[string]struct{ ttl, released, least, most time.Duration }{
		"released":        {time.Hour, 10 * time.Second, 10 * time.Second, 10*time.Second + 5*time.Second/3},
		"released at 1 s": {time.Hour, time.Second, time.Second, 5 * time.Second / 3},
		"expired":         {700 * time.Millisecond, time.Hour, 700 * time.Millisecond, 705 * time.Millisecond},
		"expired late":    {7 * time.Second, time.Hour, 7 * time.Second, 7005 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				engine.deaf = true
				c := newClient(t, engine, nil)
				time.AfterFunc(tt.released, foreign(t, engine, "a", tt.ttl))
				start := time.Now()
				o := granted(t, enqueue(t.Context(), c, "a", nil))
				if took := o.at.Sub(start); took < tt.least || took > tt.most {
					t.Errorf("acquired after %s, want %s to %s", took, tt.least, tt.most)
				}
				if n := engine.count("acquire"); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
				trusted(t, engine, o.lease, 20*time.Millisecond, 10*time.Second)
				o.lease.Release(t.Context())
				nothingLeft(t, engine, "a")
			})
		})
	}
}

// Those behind the first do not look when the lease in the way runs out: that
// would be a herd.
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
		if n := engine.count("refresh") + others.count("refresh"); n != 1 {
			t.Errorf("%d refreshes when the lease ran out, want 1", n)
		}
		l.Release(t.Context())
		for _, w := range waiting {
			granted(t, w).lease.Release(t.Context())
		}
	})
}

// Lost replies make no second place and no second lease, and the lease found
// again has the token of the first time. INVARIANTS I5 and I6.
func TestLostRepliesWhileQueued(t *testing.T) {
	for _, op := range []string{"acquire", "refresh"} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprint(op, " deaf ", deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
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
						if len(lock.Holders) != 1 || lock.Holders[0].Token != o.lease.Token() || len(lock.Queue) != 0 {
							t.Fatalf("released after %d ms: the store has %+v, the lease token %d", ms, lock, o.lease.Token())
						}
						time.Sleep(3 * time.Second)
						trusted(t, engine, o.lease, 20*time.Millisecond, time.Second)
						o.lease.Release(t.Context())
						nothingLeft(t, engine, "a")
					}
				})
			})
		}
	}
}

// News of an older grant, which a message that comes late or twice may be, is
// never taken for a grant of the present place.
func TestStaleNewsIsNotBelieved(t *testing.T) {
	// The reply to the first request is lost: the lease it leads to is handed
	// over and runs out unseen before the request is repeated.
	t.Run("after a lost reply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
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
			engine.tell(driver.News{Token: old.Holders[0].Token})
			time.Sleep(time.Second)
			stillWaits(t, waiting)
			next()
			o := granted(t, waiting)
			if o.lease.Token() <= old.Holders[0].Token {
				t.Errorf("token %d, want a new one", o.lease.Token())
			}
			trusted(t, engine, o.lease, 20*time.Millisecond, 3*time.Second)
			o.lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	})
	// A waiter that heard nothing for longer than its place starts over, with
	// another lease ID: what comes for the old one comes too late.
	t.Run("after a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			release := foreign(t, engine, "a", time.Hour)
			waiting := enqueue(t.Context(), c, "a", nil)
			before, _ := engine.Engine.Inspect(t.Context(), "a")
			engine.set(fail(driver.ErrUnavailable, "refresh", "acquire"), nil)
			time.Sleep(4900 * time.Millisecond) // in the store the place lasts 5 s
			next := enqueue(t.Context(), newClient(t, engine.Engine, nil), "a", nil)
			time.Sleep(60 * time.Millisecond)
			release() // the news comes after the waiter's deadline, before the store's
			synctest.Wait()
			engine.heal()
			time.Sleep(3 * time.Second)
			stillWaits(t, waiting)
			lock, _ := engine.Engine.Inspect(t.Context(), "a")
			for _, h := range lock.Holders {
				if h.LeaseID == before.Queue[0].LeaseID {
					t.Error("the lease that came too late stayed behind")
				}
			}
			granted(t, next).lease.Release(t.Context())
			o := granted(t, waiting)
			if o.lease.ID() == before.Queue[0].LeaseID {
				t.Error("the lease ID is still the old one")
			}
			o.lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	})
}

// stillWaits fails t if the Acquire is over.
func stillWaits(t *testing.T, waiting <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-waiting:
		t.Fatalf("Acquire = %+v, %v; want it to wait", o.lease, o.err)
	default:
	}
}

// The places of one client are renewed together, and nothing runs in between.
func TestRefreshesGoOutInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := runtime.NumGoroutine()
		var waiting []<-chan outcome
		for i := range 1000 {
			name := fmt.Sprint("name ", i)
			foreign(t, engine, name, time.Hour)
			waiting = append(waiting, enqueue(ctx, c, name, nil))
		}
		if n := runtime.NumGoroutine() - before; n > 1000 {
			t.Errorf("%d goroutines for 1,000 waiters, want no more than the callers'", n)
		}
		time.Sleep(20 * time.Second)
		// 8 batches of at most 128, every 5/3 s less a little.
		if n := engine.count("refresh"); n < 8*12 || n > 10*14 {
			t.Errorf("%d refreshes in 20 s for 1,000 waiters, want about %d", n, 8*12)
		}
		if n := engine.count("acquire"); n != 1000 {
			t.Errorf("%d attempts, want one each", n)
		}
		for i := range waiting {
			if lock, _ := engine.Engine.Inspect(ctx, fmt.Sprint("name ", i)); len(lock.Queue) != 1 || lock.Queue[0].Since < 20*time.Second {
				t.Fatalf("name %d: queue %+v, want the first place", i, lock.Queue)
			}
		}
		cancel()
		for i, w := range waiting {
			wantErr(t, (<-w).err, context.Canceled)
			time.Sleep(time.Millisecond)
			if lock, _ := engine.Engine.Inspect(t.Context(), fmt.Sprint("name ", i)); len(lock.Queue) != 0 {
				t.Fatalf("name %d: the place stayed behind", i)
			}
		}
	})
}

// Nothing goes on once nobody waits and nobody holds.
func TestNothingRunsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		before := runtime.NumGoroutine()
		for _, deaf := range []bool{false, true} {
			engine.deaf = deaf
			for _, wait := range []time.Duration{time.Second, time.Hour} {
				time.AfterFunc(10*time.Second, foreign(t, engine, "a", time.Hour))
				l, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{Wait: wait})
				if err == nil {
					l.Release(t.Context())
				}
				time.Sleep(20 * time.Second)
			}
		}
		calls := fmt.Sprint(engine.calls)
		time.Sleep(time.Hour)
		if now := fmt.Sprint(engine.calls); now != calls {
			t.Errorf("requests went on: %s, then %s", calls, now)
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("%d goroutines stayed behind", n)
		}
		if engine.watching != 0 {
			t.Errorf("%d watches stayed behind", engine.watching)
		}
	})
}

// A scripted engine answers every request for a place as it is told.
type scripted struct {
	*faulty
	held    driver.InTheWay
	acquire error // instead, from the second request on
	refresh error // instead
}

func (s *scripted) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if s.do(ctx, "acquire", func() error { return nil }); s.acquire != nil && s.count("acquire") > 1 {
		return driver.AcquireReply{}, s.acquire
	}
	return driver.AcquireReply{Outcome: driver.Held, InTheWay: s.held}, nil
}

func (s *scripted) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	s.do(ctx, "refresh", func() error { return nil })
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		replies[i] = driver.RefreshReply{AcquireReply: driver.AcquireReply{Outcome: driver.Held, InTheWay: s.held}, Err: s.refresh}
	}
	return replies
}

// INVARIANT I7: no waiter spins, whatever the store answers and whatever news
// comes: not more than one attempt and one refresh in 10 ms, and few while all
// is quiet.
func TestWaiterNeverSpins(t *testing.T) {
	answers := map[string]struct {
		scripted
		quiet int // requests in 5 s without news, at most
	}{
		"held":                   {scripted{held: driver.InTheWay{Place: 1, ExpiresIn: time.Hour}}, 5},
		"held, no time left":     {scripted{held: driver.InTheWay{Place: 1}}, 430},
		"held, behind others":    {scripted{held: driver.InTheWay{Place: 5}}, 5},
		"held without an end":    {scripted{held: driver.InTheWay{Place: 1, ExpiresIn: driver.Never}}, 5},
		"held without a place":   {scripted{held: driver.InTheWay{}}, 480},
		"place lost":             {scripted{held: driver.InTheWay{Place: 5}, refresh: driver.ErrLost}, 9},
		"place lost, at once":    {scripted{held: driver.InTheWay{Place: 1}, refresh: driver.ErrLost}, 860},
		"place lost, no answers": {scripted{held: driver.InTheWay{Place: 1}, refresh: driver.ErrLost, acquire: errLink}, 30},
		"refresh unavailable":    {scripted{held: driver.InTheWay{Place: 1, ExpiresIn: time.Hour}, refresh: driver.ErrUnavailable}, 12},
		"refresh unanswered":     {scripted{held: driver.InTheWay{Place: 1, ExpiresIn: time.Hour}, refresh: errLink}, 12},
	}
	kinds := map[string]struct {
		opts  holdfast.AcquireOptions
		news  *driver.News
		quiet int // times as many requests
	}{
		"no news":                   {quiet: 1},
		"no news, short TTL":        {quiet: 10, opts: holdfast.AcquireOptions{TTL: holdfast.MinTTL}},
		"look":                      {news: &driver.News{}},
		"look, short TTL":           {news: &driver.News{}, opts: holdfast.AcquireOptions{TTL: holdfast.MinTTL}},
		"hand-over with lock delay": {news: &driver.News{Token: 7}, opts: holdfast.AcquireOptions{LockDelay: time.Second}},
	}
	for name, answer := range answers {
		for kind, k := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := answer.scripted
					engine.faulty = newFaulty()
					engine.deaf = true
					c := newClient(t, &engine, nil)
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					waiting := enqueue(ctx, c, "a", &k.opts)
					for ctx.Err() == nil {
						if k.news != nil {
							engine.tell(*k.news)
						}
						time.Sleep(2 * time.Millisecond)
					}
					wantErr(t, (<-waiting).err, context.DeadlineExceeded)
					time.Sleep(time.Minute)
					acquires, refreshes := engine.count("acquire"), engine.count("refresh")
					if acquires > 502 || refreshes > 502 || k.quiet > 0 && acquires+refreshes > k.quiet*answer.quiet {
						t.Errorf("%d attempts and %d refreshes in 5 s", acquires, refreshes)
					}
				})
			})
		}
	}
}
