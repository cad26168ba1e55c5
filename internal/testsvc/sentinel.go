//go:build unix

package testsvc

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// MasterName is the name of the master in a Sentinels.
const MasterName = "locks"

// readyTimeout bounds how long servers may take to find one another on a
// loaded machine.
const readyTimeout = 30 * time.Second

// Sentinels are a master with two replicas, and three sentinels, which replace a master that was
// silent for about a second.
type Sentinels struct {
	Servers   []*Server // the first master first
	Sentinels []*Server
	URL       string // redis+sentinel://host:port,…/name

	t testing.TB
}

// Sentinel starts the six processes and returns when they know one another. The master and the
// replicas get the extra arguments.
func Sentinel(t testing.TB, extraArgs ...string) *Sentinels {
	t.Helper()
	g := &Sentinels{t: t}
	for i := range 3 {
		args := append([]string{"--repl-diskless-sync-delay", "0"}, extraArgs...)
		if i > 0 {
			args = append(args, "--replicaof", strings.Replace(g.Servers[0].Addr, ":", " ", 1))
		}
		g.Servers = append(g.Servers, Redis(t, args...))
	}
	await(g.t, "the replicas follow the master", func() bool { return g.replicas(g.Servers[0]) == 2 })
	var addrs []string
	for range 3 {
		s := redisServer(t, "+monitor", func(s *Server) []string { return g.sentinelArgs(s) })
		// The sentinels find one another, and new masters, in less than the usual 10 s.
		s.mustDo("SENTINEL", "DEBUG", "info-period", "500", "publish-period", "200", "ping-period", "200", "ask-period", "200")
		g.Sentinels = append(g.Sentinels, s)
		addrs = append(addrs, s.Addr)
	}
	g.URL = "redis+sentinel://" + strings.Join(addrs, ",") + "/" + MasterName
	await(g.t, "the sentinels know one another and the replicas", func() bool {
		for _, s := range g.Sentinels {
			state := s.mustDo("SENTINEL", "MASTER", MasterName)
			if !strings.Contains(state, "num-other-sentinels\n2") || !strings.Contains(state, "num-slaves\n2") {
				return false
			}
		}
		return true
	})
	return g
}

// sentinelArgs writes the configuration file of a sentinel, in which the sentinel also keeps its
// state, and returns the arguments to use it.
func (g *Sentinels) sentinelArgs(s *Server) []string {
	host, port, _ := net.SplitHostPort(g.Servers[0].Addr)
	_, own, _ := net.SplitHostPort(s.Addr)
	config := fmt.Sprintf(`port %[4]s
bind 127.0.0.1
dir %[5]s
protected-mode no
sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s 1000
sentinel failover-timeout %[1]s 5000
sentinel parallel-syncs %[1]s 2
`, MasterName, host, port, own, s.dir)
	path := filepath.Join(s.dir, "sentinel.conf")
	must(g.t, os.WriteFile(path, []byte(config), 0o600))
	return []string{path, "--sentinel"}
}

// replicas returns how many replicas are up to date, according to the master.
func (g *Sentinels) replicas(master *Server) int {
	info, err := master.Do("INFO", "replication")
	if err != nil {
		return 0
	}
	return strings.Count(info, "state=online")
}

// Master returns the server that the sentinels agree is the master.
func (g *Sentinels) Master() *Server {
	g.t.Helper()
	return g.MasterOf(g.Sentinels...)
}

// MasterOf returns the server that some of the sentinels agree is the master.
func (g *Sentinels) MasterOf(sentinels ...*Server) *Server {
	g.t.Helper()
	var master *Server
	await(g.t, "the sentinels agree on a master", func() bool {
		votes := map[string]int{}
		for _, s := range sentinels {
			addr, err := s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
			if err == nil {
				votes[strings.Replace(addr, "\n", ":", 1)]++
			}
		}
		for _, s := range g.Servers {
			if votes[s.Addr] == len(sentinels) {
				master = s
				return true
			}
		}
		return false
	})
	return master
}

// AwaitReplicas waits until the master has two replicas that are up to date, for example after a
// replaced master has returned.
func (g *Sentinels) AwaitReplicas() {
	g.t.Helper()
	await(g.t, "the replicas follow the master", func() bool { return g.replicas(g.Master()) == 2 })
}

// Patient makes the sentinels wait for a minute before they consider the master dead, so that a
// busy machine causes no failover in a test.
func (g *Sentinels) Patient() {
	for _, s := range g.Sentinels {
		s.mustDo("SENTINEL", "SET", MasterName, "down-after-milliseconds", "60000")
	}
}

// await polls until ok returns true.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(readyTimeout); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", readyTimeout, what)
		}
	}
}
