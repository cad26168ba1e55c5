package systest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// A fleet is the clients of one library that compete for one lock.
type fleet struct {
	name    string
	clients int
	// take waits for the lock, or fails when ctx ends.
	take  func(ctx context.Context) (release func() error, err error)
	turns int64 // accessed with sync/atomic while clients work
}

// retries returns how long a polling client pauses before the next attempt.
type retries func() time.Duration

func every(d time.Duration) retries { return func() time.Duration { return d } }

// redsyncDefault returns a pause as redsync's default does: 50 to 250 ms.
func redsyncDefault() time.Duration {
	return 50*time.Millisecond + rand.N(200*time.Millisecond)
}

func holdfastFleet(t *testing.T, s *store, name string, clients int) *fleet {
	client := newClient(t, openEngine(t, s.server.URL), nil)
	return &fleet{name: "holdfast", clients: clients, take: func(ctx context.Context) (func() error, error) {
		lease, err := client.Acquire(ctx, name, nil)
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(context.WithoutCancel(ctx)) }, nil
	}}
}

func redsyncFleet(t *testing.T, s *store, name string, clients int, pause retries) *fleet {
	rs := redsync.New(redsyncpool.NewPool(goRedis(t, s)))
	return &fleet{name: "redsync", clients: clients, take: func(ctx context.Context) (func() error, error) {
		m := rs.NewMutex(name, redsync.WithTries(1<<30), redsync.WithRetryDelayFunc(func(int) time.Duration { return pause() }))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error { _, err := m.UnlockContext(context.WithoutCancel(ctx)); return err }, nil
	}}
}

func bsmFleet(t *testing.T, s *store, name string, clients int, pause retries) *fleet {
	locker := bsm.New(goRedis(t, s))
	return &fleet{name: "redislock", clients: clients, take: func(ctx context.Context) (func() error, error) {
		// The retries have state in the Options, so each lock needs new ones. Without a deadline of
		// the context, Obtain would wait for at most the TTL.
		lock, err := locker.Obtain(ctx, name, 8*time.Second, &bsm.Options{RetryStrategy: bsm.LinearBackoff(pause())})
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(context.WithoutCancel(ctx)) }, nil
	}}
}

func goRedis(t *testing.T, s *store) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.server.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// compete lets all clients of the fleets take turns for d, each with some work, and returns the
// turns of all. No two clients may work at once.
func compete(t *testing.T, d, work time.Duration, fleets ...*fleet) (all int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var working atomic.Int32
	var wg sync.WaitGroup
	for _, f := range fleets {
		for range f.clients {
			wg.Go(func() {
				for ctx.Err() == nil {
					release, err := f.take(ctx)
					if err != nil {
						if ctx.Err() == nil && !errors.Is(err, holdfast.ErrHeld) {
							t.Errorf("%s: %v", f.name, err)
						}
						continue
					}
					if working.Add(1) != 1 {
						t.Errorf("%s: two work at once", f.name)
					}
					time.Sleep(work)
					working.Add(-1)
					atomic.AddInt64(&f.turns, 1)
					if err := release(); err != nil {
						t.Errorf("%s: release: %v", f.name, err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, f := range fleets {
		all += f.turns
	}
	return all
}

// TestFleetsShareALock checks that clients of other libraries that poll for the same key get their
// share, although holdfast could hand the lock on within its queue forever. It checks the same for
// clients of holdfast.
func TestFleetsShareALock(t *testing.T) {
	d := soak.For(4*time.Second, 10*time.Second)
	const work = 2 * time.Millisecond
	for _, c := range []struct {
		name    string
		ours    int
		redsync retries
		bsm     retries
		least   float64 // share of all turns that each fleet must have
	}{
		{"retries every 5 ms", 4, every(5 * time.Millisecond), every(5 * time.Millisecond), 1.0 / 12},
		{"one of ours", 1, every(5 * time.Millisecond), every(5 * time.Millisecond), 0},
		{"retries by default", 4, redsyncDefault, every(100 * time.Millisecond), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			ours := holdfastFleet(t, s, "fleets", c.ours)
			theirs := redsyncFleet(t, s, "fleets", 4, c.redsync)
			others := bsmFleet(t, s, "fleets", 4, c.bsm)
			fleets := []*fleet{ours, theirs, others}
			var all int64
			short := func(f *fleet) bool { return f.turns == 0 || float64(f.turns) < c.least*float64(all) }
			// A client that looks seldom has its first turn by chance: its 40 looks a second must
			// meet 2 ms in every 250. After that the turns for others are longer.
			for rounds := 0; rounds < 12 && (rounds == 0 || slices.ContainsFunc(fleets, short)); rounds++ {
				all = compete(t, d, work, fleets...)
			}
			report.Row(t, "a lock that holdfast, redsync and bsm/redislock want, "+c.name, "each has its turns",
				"%d + %d + %d turns in rounds of %s", ours.turns, theirs.turns, others.turns, d)
			for _, f := range fleets {
				if short(f) {
					t.Errorf("%s: %d of %d turns", f.name, f.turns, all)
				}
			}
		})
	}
}
