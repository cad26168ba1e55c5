package redislock

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestReleaseMakesNoSecondHistory checks a release while a slot moves, after the lock's key and
// before the history. A second history on the new node would stop the move (BUSYKEY), and until
// somebody ends the move by hand no name of the slot is granted.
func TestReleaseMakesNoSecondHistory(t *testing.T) {
	t.Parallel()
	c := testsvc.RedisMasters(t)
	e := open(t, c.URL+"?history=1")
	h, stays := drivertest.Request("moved", time.Minute), drivertest.Request("{moved}stays", time.Minute)
	drivertest.Granted(t, e, h)
	drivertest.Granted(t, e, stays)
	m := newMigration(t, c, h.Name)
	m.begin()
	drivertest.Release(t, e, stays)
	if n := must(t, m.from, "LLEN", "holdfast:{moved}:detail:{moved}stays\nhistory"); n != "2" {
		t.Errorf("%s events of a name whose history is on the same node, want 2", n)
	}
	host, port, _ := net.SplitHostPort(m.to.Addr)
	must(t, m.from, "MIGRATE", host, port, h.Name, "0", "5000")
	drivertest.Release(t, e, h)
	if n := must(t, m.to, "CLUSTER", "COUNTKEYSINSLOT", m.slot); n != "0" {
		t.Errorf("%s keys on the new node after the release, want 0", n)
	}
}
