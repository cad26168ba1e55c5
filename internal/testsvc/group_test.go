//go:build unix

package testsvc

import "testing"

func TestSentinelReplacesTheMaster(t *testing.T) {
	g := Sentinel(t)
	first := g.Master()
	if first != g.Servers[0] {
		t.Fatalf("the master is %s, want the first server", first.Addr)
	}
	first.Kill()
	await(t, "another master", func() bool { return g.Master() != first })
	if !g.Master().IsMaster() {
		t.Error("the new master does not know that it is")
	}
	first.Restart()
	g.AwaitReplicas()
	if first.IsMaster() {
		t.Error("the old master does not follow the new one")
	}
}

func TestClusterReplacesAMaster(t *testing.T) {
	c := RedisCluster(t)
	for i, key := range []string{"b", "c", "a"} { // slots 3300, 7365, 15495
		if got := c.Owner(key); got != i {
			t.Errorf("the owner of %q is master %d, want %d", key, got, i)
		}
		c.Masters[i].mustDo("SET", key, "x")
	}
	await(t, "its replica has the key", func() bool { return c.Replicas[1].mustDo("DBSIZE") == "1" })
	c.Masters[1].Kill()
	await(t, "its replica takes over", c.Replicas[1].IsMaster)
	if got := c.Replicas[1].mustDo("GET", "c"); got != "x" {
		t.Errorf("the replica has %q, want what its master had", got)
	}
}
