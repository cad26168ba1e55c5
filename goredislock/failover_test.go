package goredislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// afterwards fails the test unless the same engine is granted a name with a greater token soon
// after its master has failed.
func afterwards(t *testing.T, e *Engine, name string, token uint64, replaced func() bool) {
	t.Helper()
	drivertest.Eventually(t, "a replica has taken over", replaced)
	began := time.Now()
	var next driver.AcquireReply
	drivertest.Eventually(t, "the new master grants", func() bool {
		var err error
		next, err = e.Acquire(t.Context(), drivertest.Request(name, time.Minute))
		return err == nil && next.Outcome == driver.Granted
	})
	if next.Token <= token {
		t.Errorf("token %d after %d", next.Token, token)
	}
	t.Logf("granted %s after a replica took over", time.Since(began).Round(time.Millisecond))
}

// TestSentinelFailover checks that the engine finds the new master.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	g := testsvc.Sentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testsvc.MasterName, SentinelAddrs: addrs(g.Sentinels)})
	t.Cleanup(func() { _ = c.Close() })
	e := engine(t, c, nil)
	req := drivertest.Request("a", time.Minute)
	token := drivertest.Granted(t, e, req)
	drivertest.Release(t, e, req)
	g.Servers[0].Kill()
	afterwards(t, e, "a", token, func() bool { m := g.Master(); return m != nil && m != g.Servers[0] })
}

// TestClusterFailover checks that the engine finds the new owner of the slot at once, before the
// client next reads the cluster's state by itself.
func TestClusterFailover(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	g := testsvc.RedisCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(g.Masters), ClusterStateReloadInterval: time.Hour})
	t.Cleanup(func() { _ = c.Close() })
	e := engine(t, c, nil)
	req := drivertest.Request("a", time.Minute)
	token := drivertest.Granted(t, e, req)
	drivertest.Release(t, e, req)
	i := g.Owner("a")
	g.Masters[i].Kill()
	afterwards(t, e, "a", token, g.Replicas[i].IsMaster)
}

// TestUnknownMaster checks that nil from sentinels that know no master of this name is not taken
// for a script's reply.
func TestUnknownMaster(t *testing.T) {
	t.Parallel()
	g := testsvc.Sentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "another", SentinelAddrs: addrs(g.Sentinels), DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	for what, call := range calls(t.Context(), engine(t, c, nil), "a") {
		drivertest.WantIs(t, what, call(), driver.ErrUnavailable)
	}
}

// TestModes checks the mode that the engine derives from a client. A client that reads from
// replicas marks every call, and uses the masters in a cluster.
func TestModes(t *testing.T) {
	t.Parallel()
	g, cluster := testsvc.Sentinel(t), testsvc.RedisCluster(t)
	replicas := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testsvc.MasterName, SentinelAddrs: addrs(g.Sentinels), ReplicaOnly: true})
	t.Cleanup(func() { _ = replicas.Close() })
	_, err := engine(t, replicas, nil).Acquire(t.Context(), drivertest.Request("a", time.Minute))
	drivertest.WantIs(t, "on a replica that sentinels name", err, driver.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "is a read-only replica") {
		t.Errorf("%v", err)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(cluster.Masters), ReadOnly: true, RouteRandomly: true})
	t.Cleanup(func() { _ = c.Close() })
	c.SetCommandInfoResolver(c.NewDynamicResolver()) // splits commands with several keys
	e := engine(t, c, nil)
	for i := range 10 {
		req := drivertest.Request(fmt.Sprint("n/", i), time.Minute)
		drivertest.Granted(t, e, req)
		if err := e.Complete(t.Context(), driver.CompleteRequest{Name: req.Name, LeaseID: req.LeaseID, Record: []byte("x"), Retention: time.Minute}); err != nil {
			t.Error(err)
		}
		if record, found, err := e.Recall(t.Context(), req.Name); string(record.Data) != "x" || !found || err != nil { // at once: no replica is read
			t.Errorf("recall: %+v, %v, %v", record, found, err)
		}
		for _, want := range []bool{true, false} {
			if forgotten, err := e.Forget(t.Context(), req.Name); forgotten != want || err != nil {
				t.Errorf("forget: %v, %v, want %v", forgotten, err, want)
			}
		}
	}
	for want, client := range map[rediscore.Mode]redis.UniversalClient{
		rediscore.OneServer: client(t, g.Servers[0], nil), rediscore.BySentinel: replicas, rediscore.InCluster: c,
	} {
		conn, err := newConn(client)
		if err != nil || conn.Mode() != want {
			t.Errorf("a %T is taken for %d, %v, want %d", client, conn.Mode(), err, want)
		}
	}
}
