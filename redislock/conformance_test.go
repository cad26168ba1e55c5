package redislock

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
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

// cluster starts a Redis Cluster of one node that has all slots.
func cluster(t testing.TB) *testsvc.Server {
	t.Helper()
	server := testsvc.Redis(t, "--cluster-enabled", "yes")
	admin := plain(t, server)
	do(t, admin, "CLUSTER ADDSLOTSRANGE 0 16383")
	drivertest.Eventually(t, "the cluster serves", func() bool {
		return admin.Do(t.Context(), admin.B().Get().Key("k").Build()).NonRedisError() == nil &&
			rueidis.IsRedisNil(admin.Do(t.Context(), admin.B().Get().Key("k").Build()).Error())
	})
	return server
}

func clusterClient(t testing.TB, server *testsvc.Server) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, DisableCache: true, AlwaysPipelining: true,
		ClientSetInfo: rueidis.DisableClientSetInfo,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if mode := client.Mode(); mode != rueidis.ClientModeCluster {
		t.Fatalf("the client's mode is %s", mode)
	}
	return client
}
