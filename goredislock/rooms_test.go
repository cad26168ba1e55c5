package goredislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/drivertest/membertest"
	"github.com/holdfast-locks/holdfast/internal/onetimetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/rediscore/member"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// The other packages for Redis work on this client as on any other. Their own tests check their
// behaviour.

// TestMember runs the suite for members of a quorum.
func TestMember(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	open := func(tb testing.TB) *Engine {
		return engine(tb, client(tb, server, nil), &Options{Prefix: "locks:"})
	}
	membertest.Run(t, membertest.Harness{
		Open: func(tb testing.TB) driver.Member {
			if _, err := server.Do("FLUSHALL"); err != nil {
				tb.Fatal(err)
			}
			m, err := member.On(open(tb))
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = m.Close() })
			return m
		},
		Engine: func(tb testing.TB, _ driver.Member) driver.Engine { return open(tb) },
		Restart: func(tb testing.TB, m driver.Member) {
			server.Restart()
			drivertest.Eventually(tb, "the member is reached", func() bool {
				_, err := m.Inspect(context.Background(), "a")
				return err == nil
			})
		},
		Unit: 400 * time.Millisecond,
	})
}

// A claim has an arbitrary token and lease ID.
type claim struct {
	token uint64
	id    lockinfo.LeaseID
}

func (c claim) Token() uint64        { return c.token }
func (c claim) ID() lockinfo.LeaseID { return c.id }

// TestGuard checks that greater tokens pass and that others are refused and change nothing, on one
// server and on a cluster, with the guards of two engines.
func TestGuard(t *testing.T) {
	t.Parallel()
	server, cluster := testsvc.Redis(t), testsvc.RedisCluster(t)
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(cluster.Masters)})
	t.Cleanup(func() { _ = nodes.Close() })
	for name, c := range map[string]redis.UniversalClient{"one server": client(t, server, nil), "cluster": nodes} {
		for i := range 2 {
			g, err := redisfence.New(engine(t, c, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, resource := range []string{"r", "s", "t", "u"} {
				now := claim{uint64(100 * (i + 1)), lockinfo.NewLeaseID()}
				if err := g.Set(t.Context(), resource, now, "new", 0); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				stale := claim{now.token - 1, lockinfo.NewLeaseID()}
				if err := g.Set(t.Context(), resource, stale, "old", 0); !errors.Is(err, fence.ErrStale) {
					t.Errorf("%s: a stale claim: %v", name, err)
				}
				length, err := g.Run(t.Context(), redisfence.NewScript(`return redis.call('APPEND', KEYS[1], ARGV[1])`), resource, now, nil, []string{"er"})
				if err != nil || length != int64(5) {
					t.Errorf("%s: run: %v, %v", name, length, err)
				}
				if value := do(t, c, "GET "+resource); value != "newer" {
					t.Errorf("%s: %v", name, value)
				}
			}
		}
	}
}

// TestOneTime checks that one of many concurrent redeems of a token gets the payload.
func TestOneTime(t *testing.T) {
	server := testsvc.Redis(t)
	var services []*onetime.Service
	for range 4 {
		services = append(services, onetimetest.New(t, engine(t, client(t, server, nil), nil), nil))
	}
	onetimetest.RedeemByMany(t, services...)
}

// TestDiagnose checks that there are no findings for a good store, whatever the client.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	server, sentinels, cluster := testsvc.Redis(t, "--appendonly", "yes"), testsvc.Sentinel(t, "--appendonly", "yes", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"), testsvc.RedisCluster(t, "--appendonly", "yes")
	for name, c := range map[string]redis.UniversalClient{
		"one server":         client(t, server, func(o *redis.Options) { o.PoolSize = 1 }),
		"the older protocol": client(t, server, func(o *redis.Options) { o.Protocol = 2 }),
		"sentinels":          redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testsvc.MasterName, SentinelAddrs: addrs(sentinels.Sentinels)}),
		"cluster":            redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(cluster.Masters)}),
		"cluster, from one":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(cluster.Replicas[:1]), ReadOnly: true}),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { _ = c.Close() }()
			d, err := engine(t, c, nil).Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]int{}
			for _, f := range d.Findings {
				found[f.Key]++
				if f.Level != driver.OK {
					t.Errorf("%s of %s: %s: %s", f.Key, f.Server, f.Level, f.Text)
				}
			}
			for _, key := range []string{"server", "rights", "messages", "locks", "keys"} {
				if found[key] == 0 {
					t.Errorf("nothing is said of %s: %v", key, found)
				}
			}
			masters := 1
			if strings.HasPrefix(name, "cluster") {
				masters = 3 // not all nodes may know their replicas yet
			}
			if found["server"] < masters || found["round_trip"] != masters {
				t.Errorf("%d servers were looked at, %d of them masters, want %d", found["server"], found["round_trip"], masters)
			}
		})
	}
}
