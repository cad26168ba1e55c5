package redislock

import (
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestMemberPromotedAgain checks a member that was a replica for a while: it lacks a grant,
// although it was not restarted and its own marker came back from the other server.
func TestMemberPromotedAgain(t *testing.T) {
	t.Parallel()
	member, spare := testsvc.Redis(t, "--repl-diskless-sync-delay", "0"), testsvc.Redis(t, "--repl-diskless-sync-delay", "0")
	m := admitted(t, member.URL)
	follow(t, spare, member)
	votes(t, m, proposal("a"), driver.VoteAccepted) // the spare server lacks it

	follow(t, member, spare)
	votes(t, m, proposal("a"), driver.VoteQuarantined)
}

// TestMemberDropsOldReplicationID checks a promoted member without replicas. After repl-backlog-ttl
// it drops the ID from before its promotion, and goes on to grant.
func TestMemberDropsOldReplicationID(t *testing.T) {
	t.Parallel()
	old, promoted := testsvc.Redis(t, "--repl-diskless-sync-delay", "0"), testsvc.Redis(t, "--repl-backlog-ttl", "1")
	follow(t, promoted, old)
	m := admitted(t, promoted.URL)
	votes(t, m, proposal("a"), driver.VoteAccepted)
	drivertest.Eventually(t, "the server drops the ID", func() bool {
		return strings.Contains(order(t, promoted, "INFO", "replication"), "master_replid2:"+strings.Repeat("0", 40))
	})
	votes(t, m, proposal("b"), driver.VoteAccepted)
}

// order sends a command that must succeed.
func order(t testing.TB, s *testsvc.Server, words ...string) string {
	t.Helper()
	reply, err := s.Do(words...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// follow makes a server a replica of another, and promotes it when it has the data.
func follow(t testing.TB, replica, master *testsvc.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr, ":")
	order(t, replica, "REPLICAOF", host, port)
	drivertest.Eventually(t, "the replica follows its master", func() bool {
		return strings.Contains(order(t, replica, "INFO", "replication"), "master_link_status:up")
	})
	order(t, replica, "REPLICAOF", "NO", "ONE")
}
