package redislock

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestConformance(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	url := server.URL + "?prefix=locks:"
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			do(tb, admin, "FLUSHALL")
			return open(tb, url)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return open(tb, url) },
		Unit: 400 * time.Millisecond,
	})
}

// TestConformanceOnCluster runs the suite on a cluster of one node, where the
// server refuses scripts whose keys are in different slots.
func TestConformanceOnCluster(t *testing.T) {
	server := cluster(t)
	admin := plain(t, server)
	join := func(tb testing.TB) driver.Engine { return New(clusterClient(tb, server), nil) }
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			do(tb, admin, "FLUSHALL")
			return join(tb)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return join(tb) },
		Unit: 400 * time.Millisecond,
	})
}
