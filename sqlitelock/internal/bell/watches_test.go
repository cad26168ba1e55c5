package bell

import (
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestOvertakenLook checks that a look does not report that the place is gone if the lease ID got
// its place during the look.
func TestOvertakenLook(t *testing.T) {
	var all Watches
	id := lockinfo.NewLeaseID()
	w := all.Watch(id)
	all.Requests(id, "t")
	before := all.Seen(id)
	found := Sight{} // no place yet
	all.Queued(id)
	if all.Saw(id, before, found) || !silent(w) {
		t.Error("an old look was believed")
	}
	if !all.Saw(id, all.Seen(id), Sight{Looks: 1}) || !silent(w) {
		t.Error("the next look tells what is not new")
	}
	if !all.Saw(id, all.Seen(id), found) || silent(w) {
		t.Error("no notice that the place is gone")
	}
}

// silent reports whether there is no notice.
func silent(w driver.Watch) bool {
	select {
	case <-w.C():
		return false
	default:
		return true
	}
}
