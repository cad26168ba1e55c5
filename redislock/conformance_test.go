package redislock

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	conform(t, server.URL, []*testsvc.Server{server})
}

// TestConformanceOnCluster runs the suite on three masters with a replica
// each, where a server refuses scripts whose keys are in different slots.
func TestConformanceOnCluster(t *testing.T) {
	t.Parallel()
	c := testsvc.RedisCluster(t)
	c.Patient()
	conform(t, c.URL, c.Masters)
}

// TestConformanceOnSentinel runs it on the master that sentinels name.
func TestConformanceOnSentinel(t *testing.T) {
	t.Parallel()
	g := testsvc.Sentinel(t)
	g.Patient()
	conform(t, g.URL, g.Servers[:1])
}

// conform runs the suite on the store of a URL, whose data is on the masters.
func conform(t *testing.T, url string, masters []*testsvc.Server) {
	url += "?prefix=locks:"
	enginetest.Run(t, enginetest.Harness{
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
	})
}
