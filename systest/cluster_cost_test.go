package systest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
)

// leastCarried is how many times the load of one server three masters must carry at least.
const leastCarried = 1.3

// TestMastersCarryMore checks that three masters of a Redis Cluster carry more than one server,
// although a script covers many names on the server but only one slot on a master. All of them have
// a replica. They share one machine here, so the load is computed from the processor time per pair.
func TestMastersCarryMore(t *testing.T) {
	one := newStore(t)
	testsvc.Redis(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", one.server.Port()), "--repl-diskless-sync-delay", "0")
	eventually(t, "the replica follows", func() bool {
		info, err := one.do(t, "INFO", "replication").ToString()
		return err == nil && strings.Contains(info, "state=online")
	})
	cluster := testsvc.RedisCluster(t)
	engine := openEngine(t, cluster.URL)
	names := make([][]string, len(cluster.Masters))
	for i, missing := 0, pairs*len(names); missing > 0; i++ {
		name := fmt.Sprint("carried/", i)
		if m := cluster.Owner(name); len(names[m]) < pairs {
			names[m] = append(names[m], name)
			missing--
		}
	}
	l := one.link(t)
	stores, replays := []*store{one}, []replay{l.groups(t)}
	for i, master := range cluster.Masters {
		drivertest.Cycle(t, engine, names[i][0]) // now the server knows the scripts
		stores = append(stores, &store{server: master, plain: openPlain(t, master)})
		replays = append(replays, l.pairs(t, names[i])) // as they are sent to a master in one write
	}
	all := make([]budget, len(stores))
	for i, r := range replays {
		all[i].replay = r
	}
	carried := func() (n float64) {
		for i := range cluster.Masters {
			n += median(all[0].took) / median(all[1+i].took)
		}
		return n
	}
	for round := 0; round < leastRounds || round < mostRounds && carried() < leastCarried; round++ {
		for i, s := range stores {
			all[i].time(t, s)
		}
	}
	report.Row(t, "locks on three masters of a Redis Cluster, by the server's time for a pair", fmt.Sprintf("they carry %.1f times as much as one server, in groups of %d", leastCarried, group),
		"%.2f times: %.1f µs on the server, %.1f, %.1f and %.1f on the masters", carried(),
		median(all[0].took), median(all[1].took), median(all[2].took), median(all[3].took))
	if carried() < leastCarried {
		t.Errorf("three masters carry %.2f times what one server does, want %.1f at least", carried(), leastCarried)
	}
}
