package systest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// openGoRedis returns an engine on a go-redis client; both are closed when the test ends.
func openGoRedis(t testing.TB, server *testsvc.Server) *goredislock.Engine {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	e, err := goredislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close()
		_ = client.Close()
	})
	return e
}

// listening makes engines subscribe, as they do when they first wait.
func listening(t *testing.T, engines ...*rediscore.Engine) {
	t.Helper()
	for _, e := range engines {
		holder := drivertest.Request("listening", time.Minute)
		drivertest.Granted(t, e, holder)
		next, w := drivertest.Queued(t, e, "listening", time.Minute)
		<-w.C() // the first signal only asks the waiter to look: earlier notices were missed
		drivertest.Release(t, e, holder)
		drivertest.HandedOver(t, w)
		drivertest.Release(t, e, next)
	}
}

// An errand is an operation whose cost for the server is compared between two engines.
type errand struct {
	name string
	run  func(t *testing.T, e *rediscore.Engine, c *holdfast.Client)
}

func errands() []errand {
	held := func(t *testing.T, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) *holdfast.Lease {
		t.Helper()
		l, err := c.Acquire(t.Context(), name, opts)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	released := func(t *testing.T, leases ...*holdfast.Lease) {
		t.Helper()
		for _, l := range leases {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	return []errand{
		{"pair", func(t *testing.T, _ *rediscore.Engine, c *holdfast.Client) { released(t, held(t, c, "pair", nil)) }},
		{"shared pair", func(t *testing.T, _ *rediscore.Engine, c *holdfast.Client) {
			released(t, held(t, c, "shared", &holdfast.AcquireOptions{Mode: holdfast.Shared}))
		}},
		{"contended", func(t *testing.T, _ *rediscore.Engine, c *holdfast.Client) {
			l := held(t, c, "contended", nil)
			if _, err := c.TryAcquire(context.WithoutCancel(t.Context()), "contended", nil); err == nil {
				t.Error("granted twice")
			}
			released(t, l)
		}},
		{"hand-over", func(t *testing.T, e *rediscore.Engine, _ *holdfast.Client) {
			holder := drivertest.Request("handed", time.Minute)
			drivertest.Granted(t, e, holder)
			next, w := drivertest.Queued(t, e, "handed", time.Minute)
			drivertest.Release(t, e, holder)
			drivertest.HandedOver(t, w)
			drivertest.Release(t, e, next)
		}},
		{"renewals", func(t *testing.T, e *rediscore.Engine, _ *holdfast.Client) {
			var batch []driver.ExtendRequest
			for i := range 20 {
				req := drivertest.Request(fmt.Sprint("renewed/", i), time.Minute)
				drivertest.Granted(t, e, req)
				batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Minute})
			}
			for i, err := range e.Extend(t.Context(), batch) {
				if err != nil {
					t.Errorf("renewal %d: %v", i, err)
				}
			}
		}},
		{"once", func(t *testing.T, _ *rediscore.Engine, c *holdfast.Client) {
			for range 2 { // the second call replays the result
				if _, err := c.Once(t.Context(), "once", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("7"), nil }); err != nil {
					t.Error(err)
				}
			}
		}},
		{"all at once", func(t *testing.T, _ *rediscore.Engine, c *holdfast.Client) {
			all, err := c.AcquireAll(t.Context(), []string{"all/a", "all/b", "all/c"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"inspect and list", func(t *testing.T, e *rediscore.Engine, _ *holdfast.Client) {
			if _, err := e.Inspect(t.Context(), "renewed/1"); err != nil {
				t.Error(err)
			}
			for _, err := range e.List(t.Context(), "renewed/") {
				if err != nil {
					t.Error(err)
				}
			}
		}},
	}
}

// TestGoRedisCommands checks that each operation costs the server the same commands with the engine
// on go-redis as with the engine on rueidis.
func TestGoRedisCommands(t *testing.T) {
	s := newStore(t)
	engines := map[string]*rediscore.Engine{"redislock": s.engine.Engine, "goredislock": openGoRedis(t, s.server).Engine}
	clients := map[string]*holdfast.Client{}
	for name, e := range engines {
		listening(t, e)
		c, err := holdfast.New(e, &holdfast.Options{SharedEngine: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		clients[name] = c
	}
	for _, op := range errands() {
		cost := map[string]map[string]int{}
		for _, warm := range []bool{true, false} {
			for name, e := range engines {
				s.do(t, "FLUSHALL")
				s.do(t, "CONFIG", "RESETSTAT")
				op.run(t, e, clients[name])
				if !warm {
					cost[name] = s.costs(t)
				}
			}
		}
		if want, got := cost["redislock"], cost["goredislock"]; !maps.Equal(want, got) || len(got) == 0 {
			t.Errorf("%s costs\n%v on go-redis, and\n%v on rueidis", op.name, got, want)
		}
	}
}

// costs returns how often the server ran each command, without the commands with which clients
// connect and subscribe, and those of this test.
func (s *store) costs(t *testing.T) map[string]int {
	t.Helper()
	counts := s.stats(t)
	maps.DeleteFunc(counts, func(command string, _ int) bool {
		return strings.Contains(command, "|") || slices.Contains([]string{"hello", "ping", "info", "flushall", "subscribe"}, command)
	})
	return counts
}

// TestOneQueueOfTwoEngines checks that waiters of redislock and of goredislock are served in the
// order of their arrival, and that tokens grow across both engines. INVARIANT I2, I7.
func TestOneQueueOfTwoEngines(t *testing.T) {
	s := newStore(t)
	two := []*rediscore.Engine{s.engine.Engine, openGoRedis(t, s.server).Engine}
	listening(t, two...)
	holder := drivertest.Request("a", time.Minute)
	last := drivertest.Granted(t, two[0], holder)
	type waiter struct {
		req driver.AcquireRequest
		w   driver.Watch
		e   *rediscore.Engine
	}
	var queue []waiter
	for i := range 20 {
		e := two[(i+i/3)%2] // not strictly alternating
		req, w := drivertest.Queued(t, e, "a", time.Minute)
		queue = append(queue, waiter{req, w, e})
	}
	by := two[1] // an engine may release another engine's lease
	for i, next := range queue {
		drivertest.Release(t, by, holder)
		token := drivertest.HandedOver(t, next.w)
		if token <= last {
			t.Errorf("%d: token %d after %d", i, token, last)
		}
		lock, err := two[i%2].Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != next.req.LeaseID || len(lock.Queue) != len(queue)-1-i {
			t.Fatalf("%d: %+v, %v", i, lock, err)
		}
		last, holder, by = token, next.req, next.e
	}
	drivertest.Release(t, by, holder)
}
