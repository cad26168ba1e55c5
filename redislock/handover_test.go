package redislock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// waiters is the number of waiters behind the holder.
const waiters = 31

// line makes a holder of a name and its waiters.
func newLine(t testing.TB, e *Engine, name string) []driver.AcquireRequest {
	t.Helper()
	all := []driver.AcquireRequest{drivertest.Request(name, time.Minute)}
	drivertest.Granted(t, e, all[0])
	for i := range waiters {
		all = append(all, queued(t, e, drivertest.Request(name, time.Minute), time.Minute, i+1))
	}
	return all
}

// TestContendedCommands lists the commands inside the scripts for a contended lock.
func TestContendedCommands(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	for _, c := range []struct{ name, url string }{
		{"others", server.URL}, {"alone", server.URL + "?foreign=0"},
	} {
		e := open(t, c.url)
		line := newLine(t, e, c.name)
		held := drivertest.Request(c.name, time.Minute)
		join := drivertest.Request(c.name, time.Minute)
		join.Queue, join.WaiterTTL = true, time.Minute
		release := driver.ReleaseRequest{Name: c.name, LeaseID: line[0].LeaseID}
		// Otherwise it might be time to leave the lock free for foreign clients.
		ours := func() {
			do(t, admin, "EVAL", `local t = redis.call('TIME')
				redis.call('HSET', KEYS[1], 'ours', string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000)))`, "1", companionKeys(c.name)[kindDetail])
		}
		for what, want := range map[string]map[string]int64{
			"refuse":  {"mget": 1, "pttl": 1, "hmget": 1, "time": 1, "zcard": 1}, // the error reports the number of waiters
			"join":    {"mget": 1, "pttl": 1, "hmget": 1, "time": 1, "zcard": 1, "hset": 1, "zadd": 1},
			"release": {"mget": 1, "zrange": 1, "hmget": 1, "time": 1, "zrem": 1, "hdel": 1, "set": 2}, // the waiter is its own
		} {
			ours()
			do(t, admin, "CONFIG RESETSTAT")
			switch what {
			case "refuse":
				drivertest.Held(t, e, held)
			case "join":
				drivertest.Held(t, e, join)
			case "release":
				wantIs(t, "release", e.Release(t.Context(), release), nil)
			}
			if got := innerCommands(t, admin); !maps.Equal(got, want) {
				t.Errorf("%s, %s: commands %v, want %v", c.name, what, got, want)
			}
		}
		handed(t, e, line[1])
	}
	// The first and only waiter: no turns are recorded yet. It is another engine's.
	e, other, held := open(t, server.URL), open(t, server.URL), drivertest.Request("only", time.Minute)
	drivertest.Granted(t, e, held)
	next := queued(t, e, drivertest.Request("only", time.Minute), time.Minute, 1)
	drivertest.Held(t, other, drivertest.Request("only", time.Minute)) // it learns that the name is contended
	do(t, admin, "CONFIG RESETSTAT")
	wantIs(t, "release", other.Release(t.Context(), driver.ReleaseRequest{Name: "only", LeaseID: held.LeaseID}), nil)
	want := map[string]int64{"mget": 1, "zrange": 1, "hmget": 1, "time": 1, "zrem": 1, "hdel": 1, "set": 2, "unlink": 1, "publish": 1}
	if got := innerCommands(t, admin); !maps.Equal(got, want) {
		t.Errorf("release to the only one: commands %v, want %v", got, want)
	}
	handed(t, e, next)
}

// innerCommands returns how often scripts have run each command, except those for expiry.
func innerCommands(t *testing.T, admin rueidis.Client) map[string]int64 {
	t.Helper()
	got := commandStats(t, admin)
	maps.DeleteFunc(got, func(name string, _ int64) bool {
		return !slices.Contains([]string{"get", "set"}, name) && (strings.Contains(name, "|") || slices.Contains([]string{"evalsha", "eval", "ping", "hello", "subscribe", "pexpire"}, name))
	})
	return got
}

// A relay is an object that many clients pass on, once each.
type relay func(b *testing.B, n int)

// BenchmarkHandOver measures the server's time for one hand-over with 31 other waiters, against
// that of a list as a baton (BLPOP and RPUSH), in turns: each round gives a ratio.
func BenchmarkHandOver(b *testing.B) {
	server := testsvc.Redis(b)
	admin := plain(b, server)
	used := func() (us float64) {
		for line := range strings.Lines(text(b, admin, "INFO cpu")) {
			var v float64
			for _, field := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
				if _, err := fmt.Sscanf(line, field+":%f", &v); err == nil {
					us += v * 1e6
				}
			}
		}
		return us
	}
	cost := func(r relay, n int) float64 {
		before := used()
		r(b, n)
		return (used() - before) / float64(n)
	}
	lock, baton := lockRelay(b, server), batonRelay(b, server)
	var locks, batons, ratios []float64
	for b.Loop() {
		l, k := cost(lock, 3000), cost(baton, 3000)
		locks, batons, ratios = append(locks, l), append(batons, k), append(ratios, l/k)
	}
	for unit, all := range map[string][]float64{"us/hand-over": locks, "us/baton": batons, "ratio": ratios} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit)
	}
	b.ReportMetric(ratios[0], "least-ratio")
}

// lockRelay passes a lock on.
func lockRelay(b *testing.B, server *testsvc.Server) relay {
	e := open(b, server.URL)
	return func(b *testing.B, n int) {
		var wg sync.WaitGroup
		var done atomic.Int64
		for range waiters + 1 {
			wg.Go(func() {
				for done.Add(1) <= int64(n) {
					req := drivertest.Request("relay", time.Minute)
					req.Queue, req.WaiterTTL = true, time.Minute
					w := e.Watch(req.LeaseID)
					reply, err := e.Acquire(b.Context(), req)
					for err == nil && reply.Outcome == driver.Held {
						if notice := <-w.C(); notice.Token > 0 {
							break
						}
						again := refresh(b, e, req)
						reply, err = again.AcquireReply, again.Err
					}
					w.Stop()
					if err == nil {
						err = e.Release(b.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// batonRelay passes an element of a list on.
func batonRelay(b *testing.B, server *testsvc.Server) relay {
	var runners []rueidis.Client
	for range waiters + 1 {
		runners = append(runners, plain(b, server))
	}
	return func(b *testing.B, n int) {
		do(b, runners[0], "DEL baton")
		do(b, runners[0], "RPUSH baton x")
		var wg sync.WaitGroup
		var done atomic.Int64
		for _, c := range runners {
			wg.Go(func() {
				for done.Add(1) <= int64(n) {
					if err := c.Do(b.Context(), c.B().Blpop().Key("baton").Timeout(0).Build()).Error(); err != nil {
						b.Error(err)
					}
					if err := c.Do(b.Context(), c.B().Rpush().Key("baton").Element("x").Build()).Error(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
}
