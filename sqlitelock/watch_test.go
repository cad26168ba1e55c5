package sqlitelock

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// hears checks that listener hears releases of ringer, and that until a
// release of its own name a watch is silent.
func hears(t *testing.T, listener, ringer *Engine) {
	t.Helper()
	mine, other := drivertest.Request("mine", time.Minute), drivertest.Request("other", time.Minute)
	drivertest.Granted(t, ringer, mine)
	drivertest.Granted(t, ringer, other)
	w, last := drivertest.Watch(t, listener, "mine"), drivertest.Watch(t, listener, "other")
	for _, err := range ringer.Extend(t.Context(), []driver.ExtendRequest{{Name: "mine", LeaseID: mine.LeaseID, TTL: time.Hour}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	drivertest.Release(t, ringer, other)
	drivertest.Signalled(t, last) // so the listener has looked at the bell
	if !drivertest.Silent(w) {
		t.Error("a signal while the name is held")
	}
	drivertest.Release(t, ringer, mine)
	drivertest.Signalled(t, w)
}

func TestBell(t *testing.T) {
	e := openNew(t)
	for range 5 {
		hears(t, e, open(t, e.path))
	}
}

// TestBellWithoutMessages: the bell is looked at where the system refuses to
// tell of files.
func TestBellWithoutMessages(t *testing.T) {
	e := openNew(t)
	e.newWatcher = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many") }
	for range 5 {
		hears(t, e, open(t, e.path))
	}
}

// TestBellIsMadeAnew: waiters hear the bell again after it was deleted,
// replaced or moved away.
func TestBellIsMadeAnew(t *testing.T) {
	e := openNew(t)
	ringer := open(t, e.path)
	hears(t, e, ringer)
	bell := e.path + "-bell"
	for range 3 {
		if err := os.Remove(bell); err != nil {
			t.Fatal(err)
		}
		hears(t, e, ringer)
		if err := os.Rename(bell, bell+"-old"); err != nil {
			t.Fatal(err)
		}
		hears(t, e, ringer)
		if err := os.Remove(bell + "-old"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExtendDoesNotRing, nor does anything else but a release.
func TestExtendDoesNotRing(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	quiet := e.bell.read()
	drivertest.Granted(t, e, req)
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0]; err != nil {
		t.Fatal(err)
	}
	lost := driver.ReleaseRequest{Name: "t", LeaseID: driver.NewLeaseID(), Cancel: true}
	wantIs(t, "cancel", e.Release(t.Context(), lost), driver.ErrLost)
	if e.bell.read() != quiet {
		t.Error("the bell rang without a release")
	}
	drivertest.Release(t, e, req)
	if e.bell.read() == quiet {
		t.Error("a release did not ring the bell")
	}
}

// TestKeepForRings, because it may close the name for less long than the
// lease would have.
func TestKeepForRings(t *testing.T) {
	e := openNew(t)
	w := drivertest.Watch(t, e, "t")
	ringer := open(t, e.path)
	req := drivertest.Request("t", time.Hour)
	drivertest.Granted(t, ringer, req)
	err := ringer.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, KeepFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Signalled(t, w)
	if way := drivertest.Held(t, e, drivertest.Request("t", time.Minute)); way.ExpiresIn > time.Minute {
		t.Errorf("kept closed for %s, want a minute", way.ExpiresIn)
	}
}

// TestBusyFile: however often other names are released, who waits for a held
// one is not woken, even where the names share a slot of the bell.
func TestBusyFile(t *testing.T) {
	e := openNew(t)
	ringer := open(t, e.path)
	drivertest.Granted(t, ringer, drivertest.Request("quiet", time.Minute))
	same := "quiet"
	for i := 0; same == "quiet"; i++ {
		if name := fmt.Sprint("n", i); slot(name) == slot("quiet") {
			same = name
		}
	}
	w, last := drivertest.Watch(t, e, "quiet"), drivertest.Watch(t, e, same)
	for range 200 {
		drivertest.Cycle(t, ringer, same)
		drivertest.Cycle(t, ringer, "other")
	}
	drivertest.Signalled(t, last)
	if !drivertest.Silent(w) {
		t.Error("a signal for a name that is held")
	}
}

// TestStoppedWatches leave nothing behind.
func TestStoppedWatches(t *testing.T) {
	e := openNew(t)
	a, b := drivertest.Watch(t, e, "t"), drivertest.Watch(t, e, "t")
	a.Stop()
	drivertest.Cycle(t, e, "t")
	drivertest.Signalled(t, b)
	if !drivertest.Silent(a) {
		t.Error("a signal after Stop")
	}
	b.Stop()
	b.Stop()
	if n := len(e.watches.byName); n != 0 {
		t.Errorf("%d names are watched, want 0", n)
	}
}
