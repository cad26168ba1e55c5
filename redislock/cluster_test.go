package redislock

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

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
