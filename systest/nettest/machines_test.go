//go:build soaknet && linux

package nettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// Machines are three hosts with a redis and a sentinel each, which is the usual layout. The first
// host has the master.
type machines []*net.Host

const masterName = "locks"

// machinesOn starts the machines and returns when their servers know each other.
func machinesOn(t *testing.T, n *net.Net, options ...string) machines {
	t.Helper()
	m := machines(n.Hosts("m1", "m2", "m3"))
	for i, h := range m {
		args := append([]string{"--repl-diskless-sync-delay", "0"}, options...)
		if i > 0 {
			args = append(args, "--replicaof", fmt.Sprintf("%s %d", m[0].IP(), redisPort))
		}
		redisOn(t, h, args...)
	}
	eventually(t, "the replicas follow the master", func() bool {
		return strings.Count(ask(m[0], redisPort, "INFO", "replication"), "state=online") == 2
	})
	for _, h := range m {
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf(`port %d
bind 0.0.0.0
protected-mode no
dir %s
sentinel monitor %[3]s %s %d 2
sentinel down-after-milliseconds %[3]s 1000
sentinel failover-timeout %[3]s 5000
`, sentinelPort, filepath.Dir(config), masterName, m[0].IP(), redisPort)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h.Start(t, "redis-server", config, "--sentinel").Await("+monitor")
		// They then find each other in less than the usual 10 s.
		ask(h, sentinelPort, "SENTINEL", "DEBUG", "info-period", "500", "publish-period", "200", "ping-period", "200", "ask-period", "200")
	}
	eventually(t, "the sentinels know one another and the replicas", func() bool {
		for _, h := range m {
			state := ask(h, sentinelPort, "SENTINEL", "MASTER", masterName)
			if !strings.Contains(state, "num-other-sentinels\n2") || !strings.Contains(state, "num-slaves\n2") {
				return false
			}
		}
		return true
	})
	return m
}

// url returns the URL of the store, with the sentinels of these machines in the given order.
func (m machines) url(order ...int) string {
	var addrs []string
	for _, i := range order {
		addrs = append(addrs, fmt.Sprintf("%s:%d", m[i].IP(), sentinelPort))
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// another reports whether the sentinels of all these machines name a master that is not on the
// first machine, and that is in the role of a master.
func (m machines) another(of ...int) bool {
	for _, i := range of {
		answer := ask(m[i], sentinelPort, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		ip, _, _ := strings.Cut(answer, "\n")
		if ip == "" || ip == m[0].IP() {
			return false
		}
		for _, h := range m {
			if h.IP() == ip && !strings.HasPrefix(ask(h, redisPort, "ROLE"), "master") {
				return false
			}
		}
	}
	return true
}

// TestMachinesVanish checks that a machine that vanishes without notice does not stop the clients
// that are subscribed to its sentinel: they find the next master. INVARIANT I2, I3.
func TestMachinesVanish(t *testing.T) {
	for _, c := range []struct {
		what    string
		order   []int // of the sentinels in the URL: the client subscribes to the first
		vanish, // the machine that vanishes first
		kill int // unless -1, the machine whose redis ends after the client worked on for a while
	}{
		{"the master's machine, whose sentinel is listened to", []int{0, 1, 2}, 0, -1},
		{"the master's machine, another sentinel is listened to", []int{1, 2, 0}, 0, -1},
		{"the sentinel that is listened to, and then the master", []int{1, 0, 2}, 1, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			var failovers, grants []time.Duration
			leases, lost, overlaps := 0, 0, 0
			for range soak.Count(1, 8) {
				n := net.New(t)
				m, client, d := machinesOn(t, n), n.Host("client"), &diary{}
				d.crewOn(t, client, takeTurns, traffic.Job{Store: m.url(c.order...), Workers: 8, Names: 4, TTL: 3 * time.Second, Hold: 20 * time.Millisecond})
				eventually(t, "everybody works", func() bool { return len(d.all()["client"]) > 50 })
				var began time.Time
				if c.kill < 0 {
					began = time.Now()
				}
				if err := m[c.vanish].Vanish(); err != nil {
					t.Fatal(err)
				}
				left := []int{1, 2}
				if c.kill >= 0 {
					time.Sleep(2 * time.Second) // in which the client works on
					left = []int{0, 2}
					began = time.Now()
					ask(m[c.kill], redisPort, "SHUTDOWN", "NOSAVE", "NOW", "FORCE")
				}
				failover := eventually(t, "another master", func() bool { return m.another(left...) }).Sub(began)
				var next tenure
				eventually(t, "a grant by the new master", func() (ok bool) {
					next, ok = d.first("", began.Add(failover/2))
					return ok
				})
				failovers, grants = append(failovers, failover), append(grants, time.Unix(0, next.Start).Sub(began))
				if grant := grants[len(grants)-1]; grant > 2*failover {
					t.Errorf("the next grant came after %s, the failover took %s", grant, failover)
				}
				v := d.verdict() // a failover may lose the latest grants, which the tokens show
				if v.Disorder > 0 {
					t.Errorf("%d tokens are not greater than those before: %v", v.Disorder, v.Errors)
				}
				leases, overlaps, lost = leases+v.Leases, overlaps+v.Overlaps, lost+len(d.lost())
				// The next round uses new machines.
				for _, h := range append(m, client) {
					_ = h.Vanish()
				}
			}
			report.Row(t, c.what+", vanishes", "tokens strict; the next grant within twice the failover",
				"failovers of %s: the next grant after %s; %d leases, %d lost, %d overlaps", rounded(failovers), rounded(grants), leases, lost, overlaps)
		})
	}
}

func rounded(all []time.Duration) string {
	var texts []string
	for _, d := range all {
		texts = append(texts, d.Round(10*time.Millisecond).String())
	}
	return strings.Join(texts, ", ")
}

// TestOldMasterSide checks a master that is cut off with a holder on its side. As safety.md says,
// there are then two holders for the whole cut. With min-replicas the old master stops serving, and
// there are two holders for less than a TTL. The tokens tell them apart.
func TestOldMasterSide(t *testing.T) {
	const ttl, cutFor = 5 * time.Second, 15 * time.Second
	for what, c := range map[string]struct {
		options []string
		longest time.Duration
	}{
		"by default":                     {nil, cutFor + ttl},
		"min-replicas-to-write 1, lag 1": {[]string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}, ttl},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var longest time.Duration
			overlaps, disorder, rounds := 0, 0, soak.Count(1, 5)
			for range rounds {
				n := net.New(t)
				m, old, other, d := machinesOn(t, n, c.options...), n.Host("old side"), n.Host("other side"), &diary{}
				d.crewOn(t, old, holdAll, traffic.Job{Store: m.url(0, 1, 2), Workers: 1, TTL: ttl})
				eventually(t, "the lock is held", func() bool { return d.held(old.Name) == 1 })
				eventually(t, "the replicas know", func() bool {
					return ask(m[1], redisPort, "EXISTS", "lock/0") == "1" && ask(m[2], redisPort, "EXISTS", "lock/0") == "1"
				})
				n.Split([]*net.Host{m[0], old}, []*net.Host{m[1], m[2], other})
				cut := time.Now()
				eventually(t, "another master", func() bool { return m.another(1, 2) })
				d.crewOn(t, other, holdAll, traffic.Job{Store: m.url(0, 1, 2), Workers: 1, TTL: ttl})
				eventually(t, "the other side holds the lock", func() bool { return d.held(other.Name) == 1 })
				time.Sleep(time.Until(cut.Add(cutFor))) // while the cut lasts
				n.Heal()
				eventually(t, "the holder on the old side is told", func() bool { return len(d.lost()) > 0 })
				v := d.verdict()
				overlaps, longest, disorder = overlaps+v.Overlaps, max(longest, v.Longest), disorder+v.Disorder
				for _, h := range append(m, old, other) {
					_ = h.Vanish()
				}
			}
			if disorder > 0 {
				t.Errorf("%d tokens are not greater than those before", disorder)
			}
			if longest > c.longest {
				t.Errorf("two held the lock for %s, want %s at most", longest, c.longest)
			}
			report.Row(t, "an old master is cut off with a holder on its side, "+what, fmt.Sprintf("tokens strict; two holders for %s at most", c.longest),
				"%d cuts of %s, TTL %s: %d times two holders, for %s at most; %d tokens not greater", rounds, cutFor, ttl, overlaps, longest.Round(10*time.Millisecond), disorder)
		})
	}
}
