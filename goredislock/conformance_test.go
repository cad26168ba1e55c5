package goredislock

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestConformance runs the suite with a pool of one connection: no request may occupy it while it
// waits.
func TestConformance(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	enginetest.Run(t, harness(func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: 1})
	}, server))
}

// TestConformanceOnCluster runs the suite on three masters with a replica
// each, where a server refuses scripts whose keys are in different slots.
func TestConformanceOnCluster(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	c := testsvc.RedisCluster(t)
	c.Patient()
	enginetest.Run(t, harness(func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Masters[0].Addr}})
	}, c.Masters...))
}

// TestConformanceOnSentinel runs the suite on the master that sentinels name, with RESP2, and
// through a wrapper.
func TestConformanceOnSentinel(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	g := testsvc.Sentinel(t)
	g.Patient()
	h := harness(func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testsvc.MasterName, SentinelAddrs: addrs(g.Sentinels), Protocol: 2})
	}, g.Servers[0])
	enginetest.Run(t, h.Forwarded(driver.Capabilities{}))
}

// TestHistory runs the requirements on history.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	enginetest.RunHistory(t, remembering(func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: 2})
	}, server))
}

// TestHistoryOnCluster runs them where a node sends events only if a client listens on it.
func TestHistoryOnCluster(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	c := testsvc.RedisCluster(t)
	c.Patient()
	enginetest.RunHistory(t, remembering(func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Masters[0].Addr}})
	}, c.Masters...))
}

// TestHistoryOnSentinel runs them on the master that sentinels name, with RESP2.
func TestHistoryOnSentinel(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	g := testsvc.Sentinel(t)
	g.Patient()
	enginetest.RunHistory(t, remembering(func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testsvc.MasterName, SentinelAddrs: addrs(g.Sentinels), Protocol: 2})
	}, g.Servers[0]))
}

// remembering is harness for engines with history.
func remembering(client func() redis.UniversalClient, masters ...*testsvc.Server) enginetest.Harness {
	return harnessWith(&Options{Prefix: "locks:", History: true}, client, masters...)
}

// harness opens engines for the suite on a store whose data is on the masters. Each engine has a
// client of its own, as in another program.
func harness(client func() redis.UniversalClient, masters ...*testsvc.Server) enginetest.Harness {
	return harnessWith(&Options{Prefix: "locks:"}, client, masters...)
}

func harnessWith(opts *Options, client func() redis.UniversalClient, masters ...*testsvc.Server) enginetest.Harness {
	join := func(tb testing.TB) driver.Engine {
		c := client()
		tb.Cleanup(func() { _ = c.Close() })
		return engine(tb, c, opts)
	}
	return enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			for _, m := range masters {
				if _, err := m.Do("FLUSHALL"); err != nil {
					tb.Fatal(err)
				}
			}
			return join(tb)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return join(tb) },
		Unit: 400 * time.Millisecond,
	}
}
