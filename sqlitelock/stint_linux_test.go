package sqlitelock

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestWaiterSaysSo checks that an engine that waits for the write lock shows this to the other
// engines of the file, but not to itself, as long as it waits.
func TestWaiterSaysSo(t *testing.T) {
	e := openNew(t)
	other, elsewhere := open(t, e.path), open(t, e.path+"2")
	j := newJam(t, e)
	j.acquires(1)
	drivertest.Eventually(t, "it says that it waits", func() bool { return other.files.OthersWait() })
	if e.files.OthersWait() {
		t.Error("an engine takes itself for another")
	}
	if elsewhere.files.OthersWait() {
		t.Error("those hear it who use another file of the directory")
	}
	j.end()
	if other.files.OthersWait() {
		t.Error("it still says so when it has been served")
	}
}

// TestGivesWay checks that an engine that has used the write lock for a stint gives way to a
// waiting engine, once and for a bounded time. Alone, or after a short stint, it does not give way.
func TestGivesWay(t *testing.T) {
	e := openNew(t)
	other := open(t, e.path)
	var paused time.Duration
	e.brief = func(d time.Duration) { paused += d; time.Sleep(d) }
	const long, now = -time.Hour, time.Hour // now is far ahead, in case this machine is slow
	before := func(began, ended time.Duration, what string, gives bool) {
		t.Helper()
		e.stint, paused = stint{time.Now().Add(began), time.Now().Add(ended)}, 0
		e.giveWay()
		if paused > 0 != gives || paused > 2*givesWayFor {
			t.Errorf("%s: it gave way for %s: want it to: %t", what, paused, gives)
		}
	}
	before(long, now, "alone", false)
	other.files.Wait(true)
	before(long, now, "after a long stint", true)
	before(now, now, "after a short stint", false)
	before(long, long, "after a pause", false)
	other.files.Wait(false)
	before(long, now, "when nobody waits any more", false)
}

// TestGivesWayToOne checks that an engine that gives way continues at once when the other engine
// has been served.
func TestGivesWayToOne(t *testing.T) {
	e := openNew(t)
	other := open(t, e.path)
	other.files.Wait(true)
	pauses := 0
	e.brief = func(time.Duration) {
		pauses++
		drivertest.Granted(t, other, drivertest.Request(string(lockinfo.NewLeaseID()), time.Minute))
		other.files.Wait(false)
	}
	e.stint = stint{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} // ends far ahead
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	if pauses != 1 {
		t.Errorf("it paused %d times, want once", pauses)
	}
}
