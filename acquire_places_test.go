package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestNothingRunsAfterwards checks that the client sends no requests when it has no waiters and no
// leases. (A goroutine left behind would fail the bubble.)
func TestNothingRunsAfterwards(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for _, deaf := range []bool{false, true} {
			engine.deaf = deaf
			engine.set(delay(30*time.Millisecond), delay(30*time.Millisecond))
			for ms := 1500; ms < 1800; ms += 10 { // before, during and after a refresh
				for _, wait := range []time.Duration{time.Duration(ms) * time.Millisecond, time.Hour} {
					time.AfterFunc(time.Duration(ms+20)*time.Millisecond, foreign(t, engine, "a", time.Hour))
					l, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MaxWait: wait})
					if err == nil {
						l.Release(t.Context())
					}
					time.Sleep(10 * time.Second)
				}
			}
		}
		calls := fmt.Sprint(engine.calls)
		time.Sleep(time.Hour)
		now := fmt.Sprint(engine.calls)
		expect(t, now == calls, "requests went on: %s, then %s", calls, now)
		expect(t, engine.watching == 0, "%d watches stayed behind", engine.watching)
	})
}

// A scripted engine gives the same reply to every request for a place.
type scripted struct {
	*faulty
	held    driver.Blocker
	acquire error // returned from the second request on, unless nil
	refresh error // returned with every reply
}

func (s *scripted) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if s.do(ctx, "acquire", func() error { return nil }); s.acquire != nil && s.count("acquire") > 1 {
		return driver.AcquireReply{}, s.acquire
	}
	return driver.AcquireReply{Outcome: driver.Held, Blocker: s.held}, nil
}

func (s *scripted) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	s.do(ctx, "refresh", func() error { return nil })
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		replies[i] = driver.RefreshReply{AcquireReply: driver.AcquireReply{Outcome: driver.Held, Blocker: s.held}, Err: s.refresh}
	}
	return replies
}

// TestWaiterNeverSpins checks that no waiter spins, whatever the store replies and whichever
// notices arrive: it sends at most one attempt and one refresh in 10 ms, and few while no notices
// arrive. INVARIANT I7.
func TestWaiterNeverSpins(t *testing.T) {
	answers := map[string]struct {
		scripted
		quiet int // requests in 5 s without notices, at most
	}{
		"held":                   {scripted{held: driver.Blocker{Place: 1, ExpiresIn: time.Hour}}, 5},
		"held, no time left":     {scripted{held: driver.Blocker{Place: 1}}, 430},
		"held, behind others":    {scripted{held: driver.Blocker{Place: 5}}, 5},
		"held with no expiry":    {scripted{held: driver.Blocker{Place: 1, ExpiresIn: lockinfo.Never}}, 5},
		"held without a place":   {scripted{held: driver.Blocker{}}, 480},
		"place lost":             {scripted{held: driver.Blocker{Place: 5}, refresh: driver.ErrLost}, 9},
		"place lost, at once":    {scripted{held: driver.Blocker{Place: 1}, refresh: driver.ErrLost}, 860},
		"place lost, no answers": {scripted{held: driver.Blocker{Place: 1}, refresh: driver.ErrLost, acquire: errLink}, 30},
		"refresh unavailable":    {scripted{held: driver.Blocker{Place: 1, ExpiresIn: time.Hour}, refresh: driver.ErrUnavailable}, 12},
		"refresh unanswered":     {scripted{held: driver.Blocker{Place: 1, ExpiresIn: time.Hour}, refresh: errLink}, 12},
	}
	kinds := map[string]struct {
		opts   holdfast.AcquireOptions
		notice *driver.Notice
		quiet  int // a factor for the above
	}{
		"no news":                   {quiet: 1},
		"no news, short TTL":        {quiet: 10, opts: holdfast.AcquireOptions{TTL: holdfast.MinTTL}},
		"look":                      {notice: &driver.Notice{}},
		"look, short TTL":           {notice: &driver.Notice{}, opts: holdfast.AcquireOptions{TTL: holdfast.MinTTL}},
		"hand-over with lock delay": {notice: &driver.Notice{Token: 7}, opts: holdfast.AcquireOptions{LockDelay: time.Second}},
	}
	for name, answer := range answers {
		for kind, k := range kinds {
			runInBubble(t, name+", "+kind, func(t *testing.T) {
				engine := answer.scripted
				engine.faulty = newFaulty()
				engine.deaf = true
				c := newClient(t, &engine, nil)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				waiting := enqueue(ctx, c, "a", &k.opts)
				for ctx.Err() == nil {
					if k.notice != nil {
						engine.tell(*k.notice)
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
		}
	}
}

// TestWaitersUnderFaults checks that under random faults no two clients trust an exclusive lock at
// the same time, the store keeps each lease for as long as it is trusted, and nothing is left.
// INVARIANTS I1, I3 and I5.
func TestWaitersUnderFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(randomFaults, randomFaults)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		held := map[string][]*holdfast.Lease{}
		var mu sync.Mutex // guards held
		leases := 0
		note := func(l *holdfast.Lease) {
			mu.Lock()
			defer mu.Unlock()
			leases++
			for _, other := range held[l.Name()] {
				if other.Valid() && l.Valid() && (other.Mode() == holdfast.Exclusive || l.Mode() == holdfast.Exclusive) {
					t.Errorf("leases %d (%s) and %d (%s) of %q at the same time", other.Token(), other.Mode(), l.Token(), l.Mode(), l.Name())
				}
			}
			held[l.Name()] = append(held[l.Name()], l)
		}
		var wg sync.WaitGroup
		for i := range 12 {
			c := newClient(t, engine, &holdfast.Options{RequestTimeout: time.Second})
			wg.Go(func() {
				for ctx.Err() == nil {
					ttls := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 30 * time.Second}
					opts := &holdfast.AcquireOptions{
						TTL: ttls[rand.IntN(4)], Mode: holdfast.Mode(rand.IntN(2)), KeepAlive: holdfast.KeepAlive(rand.IntN(2)),
					}
					wait, stop := context.WithTimeout(ctx, rand.N(20*time.Second))
					l, err := c.Acquire(wait, fmt.Sprint("name ", i%2), opts)
					stop()
					switch {
					case err == nil:
						note(l)
						trusted(t, engine, l, 7*time.Millisecond, rand.N(3*time.Second))
						_ = l.Release(ctx) // may be lost, or unanswered
					case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrUnavailable):
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		engine.heal()
		time.Sleep(2 * time.Minute)
		expect(t, leases >= 50, "%d leases, want some hundreds", leases)
		for name := range held {
			nothingLeft(t, engine, name)
		}
	})
}

// randomFaults is a hook that is slow at times, and at times fails or hangs.
func randomFaults(ctx context.Context, _ string) error {
	switch n := rand.IntN(100); {
	case n < 2:
		<-ctx.Done()
		return ctx.Err()
	case n < 6:
		return errLink
	case n < 40:
		time.Sleep(rand.N(40 * time.Millisecond))
	}
	return nil
}

// occupied is an engine whose locks are held by foreign clients.
type occupied struct {
	*scripted
	left   func() time.Duration // of the foreign lock
	places atomic.Int64         // how many places were refreshed
}

func (o *occupied) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	o.places.Add(int64(len(reqs)))
	now := scripted{faulty: o.faulty, held: o.held}
	now.held.ExpiresIn = o.left()
	return now.Refresh(ctx, reqs)
}

// TestHeadLooksForForeignClients checks that the first waiter of a queue refreshes its place often,
// because the release of a foreign client sends no notice. It does so less often while one foreign
// lease stays, and all waiters of a client together refresh no more than 200 times a second.
func TestHeadLooksForForeignClients(t *testing.T) {
	const span = 5 * time.Second
	tests := map[string]struct {
		names       int
		place       int
		left        func(began time.Time) time.Duration
		least, most int64 // places refreshed in span
	}{
		"one stays":        {1, 1, func(began time.Time) time.Duration { return time.Hour - time.Since(began) }, 95, 105},
		"one without end":  {1, 1, func(time.Time) time.Duration { return lockinfo.Never }, 95, 105},
		"they come and go": {1, 1, func(time.Time) time.Duration { return 8 * time.Second }, 480, 500},
		"not the head":     {1, 2, func(time.Time) time.Duration { return 8 * time.Second }, 2, 5},
		"100 names":        {100, 1, func(time.Time) time.Duration { return 8 * time.Second }, 900, 1100},
		"2,000 names":      {2000, 1, func(time.Time) time.Duration { return 8 * time.Second }, 4000, 9000}, // because of their waiter TTL
	}
	for name, tt := range tests {
		runInBubble(t, name, func(t *testing.T) {
			began := time.Now()
			engine := &occupied{
				scripted: &scripted{faulty: newFaulty(), held: driver.Blocker{Place: tt.place, Foreign: true, ExpiresIn: tt.left(began)}},
				left:     func() time.Duration { return tt.left(began) },
			}
			c := newClient(t, engine, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiting []<-chan outcome
			for i := range tt.names {
				waiting = append(waiting, enqueue(ctx, c, fmt.Sprint(i), nil))
			}
			time.Sleep(span)
			synctest.Wait()
			looks := engine.places.Load()
			expect(t, looks >= tt.least && looks <= tt.most, "%d looks in %s, want %d to %d", looks, span, tt.least, tt.most)
			cancel()
			for _, w := range waiting {
				wantErr(t, (<-w).err, context.Canceled)
			}
		})
	}
}

// A refresher counts refresh requests and the places in them.
type refresher struct {
	*mem.Engine
	requests, places atomic.Int64
	ttl              atomic.Int64 // of the latest place
}

func (r *refresher) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	r.requests.Add(1)
	r.places.Add(int64(len(reqs)))
	r.ttl.Store(int64(reqs[len(reqs)-1].WaiterTTL))
	return r.Engine.Refresh(ctx, reqs)
}

// TestManyPlacesAreRefreshedSlowly checks that the places of a client last longer the more waiters
// it has, up to the TTL, so that the store's work does not grow with their number.
func TestManyPlacesAreRefreshedSlowly(t *testing.T) {
	for _, tc := range []struct {
		waiters int
		ttl     time.Duration
		most    float64 // refreshes a second
	}{
		{100, 30 * time.Second, 70},
		{1000, 30 * time.Second, 700},
		{5000, 30 * time.Second, 1100},
		{5000, 5 * time.Second, 3400}, // a place never lasts longer than a lease
	} {
		runInBubble(t, fmt.Sprintf("%d of %s", tc.waiters, tc.ttl), func(t *testing.T) {
			engine := &refresher{Engine: mem.New(nil)}
			c := newClient(t, engine, &holdfast.Options{TTL: tc.ttl})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i := range tc.waiters {
				name := fmt.Sprint(i)
				mustAcquireElsewhere(t, engine, name)
				all.Go(func() {
					_, err := c.Acquire(ctx, name, nil)
					expect(t, err != nil, "%s is ours", name)
				})
			}
			time.Sleep(20 * time.Second)
			places, requests := engine.places.Load(), engine.requests.Load()
			const span = 30 * time.Second
			time.Sleep(span)
			places, requests = engine.places.Load()-places, engine.requests.Load()-requests
			cancel()
			all.Wait()
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, _ = c.Acquire(ctx, "0", nil)
			ttl := time.Duration(engine.ttl.Load())
			expect(t, ttl == 5*time.Second, "the place of one waiter lasts %s when the others are gone, want 5s", ttl)
			rate, each := float64(places)/span.Seconds(), float64(places)/float64(requests)
			t.Logf("%.1f refreshes a second, %.1f in a request", rate, each)
			if rate > tc.most || tc.waiters > 1000 && each < 0.9*driver.MaxBatch {
				t.Errorf("%.1f refreshes a second, %.1f in a request; want %.0f at most, and about %d", rate, each, tc.most, driver.MaxBatch)
			}
		})
	}
}

// An unsure engine returns ErrUnavailable for the first refresh with a longer waiter TTL than
// usual.
type unsure struct {
	*mem.Engine
	usual time.Duration
	first time.Time // when that refresh arrived
	again time.Time // when the next refresh of that place arrived
	place lockinfo.LeaseID
}

func (u *unsure) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := u.Engine.Refresh(ctx, reqs)
	for i, r := range reqs {
		switch {
		case u.first.IsZero() && r.WaiterTTL > u.usual:
			u.first, u.place = time.Now(), r.LeaseID
			replies[i].Err = driver.ErrUnavailable
		case u.place == r.LeaseID && u.again.IsZero():
			u.again = time.Now()
		}
	}
	return replies
}

// TestLongerWaiterTTLIsConfirmed checks that a longer waiter TTL counts only after the store has
// replied. Until then the place may end sooner.
func TestLongerWaiterTTLIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &unsure{Engine: mem.New(nil), usual: 5 * time.Second}
		mustAcquireElsewhere(t, engine, "busy")
		c := newClient(t, engine, &holdfast.Options{TTL: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan outcome
		for range 5000 {
			waiting = append(waiting, enqueue(ctx, c, "busy", nil))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		for _, w := range waiting {
			wantErr(t, (<-w).err, context.Canceled)
		}
		wait := engine.again.Sub(engine.first)
		expect(t, !engine.again.IsZero() && wait <= time.Second, "the next refresh came %s after one that got no answer, want 1s at most", wait)
	})
}

// mustAcquireElsewhere acquires a lock for another client, for an hour.
func mustAcquireElsewhere(t *testing.T, engine driver.Engine, name string) {
	t.Helper()
	req := driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour}
	reply, err := engine.Acquire(t.Context(), req)
	need(t, err == nil && reply.Outcome == driver.Granted, "%s: %+v, %v", name, reply, err)
}

// TestPermitsOfDeadClientComeBack checks that each permit of a dead client becomes free when its
// lease expires, and goes to one waiter.
func TestPermitsOfDeadClientComeBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		opts := semaphore(3, 1)
		opts.TTL, opts.KeepAlive = 10*time.Second, holdfast.KeepAliveOff // like a dead client
		start := time.Now()
		for range 3 {
			mustAcquire(t, c, "a", opts)
			time.Sleep(3 * time.Second)
		}
		var waiting []<-chan outcome
		for range 3 {
			waiting = append(waiting, enqueue(t.Context(), c, "a", semaphore(3, 1)))
		}
		for i, w := range waiting {
			o := granted(t, w)
			expiry := time.Duration(10+3*i) * time.Second
			at := o.at.Sub(start)
			expect(t, at >= expiry && at <= expiry+5*time.Second/3, "permit %d came after %s, want soon after the expiry at %s", i, at, expiry)
			defer o.lease.Release(t.Context())
		}
	})
}
