//go:build unix

package testsvc

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// A Cluster is a Redis Cluster of three masters.
type Cluster struct {
	Masters  []*Server // each has an equal part of the slots, in order
	Replicas []*Server // each replicates the master with the same index; may be empty
	URL      string    // redis+cluster://host:port,…
}

// RedisCluster starts three masters and their replicas, and returns when each node knows all slots
// and all other nodes. Each node gets the extra arguments.
func RedisCluster(t testing.TB, extraArgs ...string) *Cluster {
	t.Helper()
	return redisCluster(t, 2*clusterMasters, extraArgs...)
}

// RedisMasters is RedisCluster without replicas.
func RedisMasters(t testing.TB) *Cluster {
	t.Helper()
	return redisCluster(t, clusterMasters)
}

func redisCluster(t testing.TB, servers int, extraArgs ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	var all []*Server
	var addrs []string
	for range servers {
		s := redisServer(t, ready, func(s *Server) []string {
			args := []string{
				"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000",
				"--cluster-port", strconv.Itoa(freePort(t)), "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0",
			}
			return dataArgs(s, append(args, extraArgs...))
		})
		all = append(all, s)
		addrs = append(addrs, s.Addr)
	}
	c.Masters, c.Replicas = all[:clusterMasters], all[clusterMasters:]
	c.URL = "redis+cluster://" + strings.Join(addrs, ",")
	for i, m := range c.Masters {
		m.mustDo("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*clusterSlots/clusterMasters), strconv.Itoa((i+1)*clusterSlots/clusterMasters-1))
		m.mustDo("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, s := range all[1:] {
		host, port, _ := net.SplitHostPort(all[0].Addr)
		s.mustDo("CLUSTER", "MEET", host, port, busPort(all[0]))
	}
	known := fmt.Sprintf("cluster_known_nodes:%d", len(all))
	for _, s := range all {
		await(t, "the nodes know one another", func() bool { return strings.Contains(s.mustDo("CLUSTER", "INFO"), known) })
	}
	for i, r := range c.Replicas {
		r.mustDo("CLUSTER", "REPLICATE", c.Masters[i].mustDo("CLUSTER", "MYID"))
	}
	for _, s := range all {
		await(t, "the cluster serves and every master has its replica", func() bool {
			return strings.Contains(s.mustDo("CLUSTER", "INFO"), "cluster_state:ok") &&
				strings.Count(s.mustDo("CLUSTER", "NODES"), "slave") == len(c.Replicas)
		})
	}
	for i := range c.Replicas {
		m := c.Masters[i]
		await(t, "the replica follows", func() bool { return strings.Contains(m.mustDo("INFO", "replication"), "state=online") })
	}
	return c
}

// busPort returns the port of a node's cluster bus.
func busPort(s *Server) string {
	for i, arg := range s.args {
		if arg == "--cluster-port" {
			return s.args[i+1]
		}
	}
	s.t.Fatalf("%s is not a node of a cluster", s.Addr)
	return ""
}

// Owner returns the index of the master that has the slot of a key.
func (c *Cluster) Owner(key string) int {
	m := c.Masters[0]
	slot, err := strconv.Atoi(m.mustDo("CLUSTER", "KEYSLOT", key))
	must(m.t, err)
	return min(slot*clusterMasters/clusterSlots, clusterMasters-1)
}

// Patient makes the nodes wait for a minute before they take one another for dead, so that a busy
// machine causes no failover in a test.
func (c *Cluster) Patient() {
	for _, s := range slices.Concat(c.Masters, c.Replicas) {
		s.mustDo("CONFIG", "SET", "cluster-node-timeout", "60000")
	}
}
