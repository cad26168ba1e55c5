//go:build unix

package testsvc

import (
	"strings"
	"testing"
)

func TestSentinelReplacesTheMaster(t *testing.T) {
	g := Sentinel(t)
	first := g.Master()
	if first != g.Servers[0] {
		t.Fatalf("the master is %s, want the first server", first.Addr)
	}
	first.Kill()
	await(t, "another master", func() bool { return g.Master() != first })
	if role := g.Master().mustDo("ROLE"); !strings.HasPrefix(role, "master") {
		t.Errorf("the new master says %q", role)
	}
	first.Restart()
	await(t, "the old one follows", func() bool { return strings.HasPrefix(first.mustDo("ROLE"), "slave") })
}

func TestClusterReplacesAMaster(t *testing.T) {
	c := RedisCluster(t)
	for i, key := range []string{"b", "c", "a"} { // slots 3300, 7365, 15495
		if got := c.Owner(key); got != i {
			t.Errorf("the owner of %q is master %d, want %d", key, got, i)
		}
		c.Masters[i].mustDo("SET", key, "x")
	}
	c.Masters[1].Kill()
	await(t, "its replica takes over", func() bool { return strings.HasPrefix(c.Replicas[1].mustDo("ROLE"), "master") })
	if got := c.Replicas[1].mustDo("GET", "c"); got != "x" {
		t.Errorf("the replica has %q, want what its master had", got)
	}
}
