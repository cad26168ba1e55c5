package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	enginetest.Run(t, harness(server.URL, server))
}

// TestConformanceWithoutFlags runs the requirements on the engine's flags, each of them switched
// off by a wrapper.
func TestConformanceWithoutFlags(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	enginetest.RunForwarded(t, harness(server.URL, server))
}

// TestConformanceOnCluster runs the suite on three masters with a replica
// each, where a server refuses scripts whose keys are in different slots.
func TestConformanceOnCluster(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	c := testsvc.RedisCluster(t)
	c.Patient()
	enginetest.Run(t, harness(c.URL, c.Masters...))
}

// TestConformanceOnSentinel runs the suite on the master that sentinels name, and through a
// wrapper.
func TestConformanceOnSentinel(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	g := testsvc.Sentinel(t)
	g.Patient()
	enginetest.Run(t, harness(g.URL, g.Servers[0]).Forwarded(driver.Capabilities{}))
}

// TestConformanceWithHistory runs the suite on engines with history.
func TestConformanceWithHistory(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	server := testsvc.Redis(t)
	enginetest.Run(t, harness(server.URL+"?history=1", server))
}

// TestHistoryOnCluster runs the requirements on history where the keys that plain scripts derive
// must be declared, and a node sends events only if a client listens on it.
func TestHistoryOnCluster(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	c := testsvc.RedisCluster(t)
	c.Patient()
	enginetest.RunHistory(t, harness(c.URL+"?history=1", c.Masters...))
}

// TestHistoryOnSentinel runs them on the master that sentinels name.
func TestHistoryOnSentinel(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	g := testsvc.Sentinel(t)
	g.Patient()
	enginetest.RunHistory(t, harness(g.URL+"?history=1", g.Servers[0]))
}

// harness opens engines for the suite on the store of a URL, whose data is on the masters.
func harness(url string, masters ...*testsvc.Server) enginetest.Harness {
	if strings.Contains(url, "?") {
		url += "&prefix=locks:"
	} else {
		url += "?prefix=locks:"
	}
	return enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			for _, m := range masters {
				if _, err := m.Do("FLUSHALL"); err != nil {
					tb.Fatal(err)
				}
			}
			return open(tb, url)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return open(tb, url) },
		Unit: 400 * time.Millisecond,
	}
}
