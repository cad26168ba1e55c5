package sqlitelock

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

// signalled fails t unless w is signalled.
func signalled(t testing.TB, w driver.Watch) {
	t.Helper()
	select {
	case <-w.C():
	case <-time.After(patience):
		t.Fatal("no signal")
	}
}

// silent reports whether w has no signal now.
func silent(w driver.Watch) bool {
	select {
	case <-w.C():
		return false
	default:
		return true
	}
}

func watchName(t testing.TB, e *Engine, name string) driver.Watch {
	t.Helper()
	w, err := e.Watch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// cycle takes and releases a lock.
func cycle(t testing.TB, e *Engine, name string) {
	t.Helper()
	req := request(name, time.Minute)
	granted(t, e, req)
	release(t, e, req)
}

// hears checks that listener hears releases of ringer, and that until a
// release of its own name a watch is silent.
func hears(t *testing.T, listener, ringer *Engine) {
	t.Helper()
	mine, other := request("mine", time.Minute), request("other", time.Minute)
	granted(t, ringer, mine)
	granted(t, ringer, other)
	w, last := watchName(t, listener, "mine"), watchName(t, listener, "other")
	for _, err := range ringer.Extend(t.Context(), []driver.ExtendRequest{{Name: "mine", LeaseID: mine.LeaseID, TTL: time.Hour}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	release(t, ringer, other)
	signalled(t, last) // so the listener has looked at the bell
	if !silent(w) {
		t.Error("a signal while the name is held")
	}
	release(t, ringer, mine)
	signalled(t, w)
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
	req := request("t", time.Minute)
	granted(t, e, req)
	quiet := e.bell.read()
	granted(t, e, req)
	held(t, e, request("t", time.Minute))
	if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0]; err != nil {
		t.Fatal(err)
	}
	lost := driver.ReleaseRequest{Name: "t", LeaseID: driver.NewLeaseID(), Cancel: true}
	wantIs(t, "cancel", e.Release(t.Context(), lost), driver.ErrLost)
	if e.bell.read() != quiet {
		t.Error("the bell rang without a release")
	}
	release(t, e, req)
	if e.bell.read() == quiet {
		t.Error("a release did not ring the bell")
	}
}

// TestKeepForRings, because it may close the name for less long than the
// lease would have.
func TestKeepForRings(t *testing.T) {
	e := openNew(t)
	w := watchName(t, e, "t")
	ringer := open(t, e.path)
	req := request("t", time.Hour)
	granted(t, ringer, req)
	err := ringer.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, KeepFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	signalled(t, w)
	if way := held(t, e, request("t", time.Minute)); way.ExpiresIn > time.Minute {
		t.Errorf("kept closed for %s, want a minute", way.ExpiresIn)
	}
}

// TestBusyFile: however often other names are released, who waits for a held
// one is not woken, even where the names share a slot of the bell.
func TestBusyFile(t *testing.T) {
	e := openNew(t)
	ringer := open(t, e.path)
	granted(t, ringer, request("quiet", time.Minute))
	same := "quiet"
	for i := 0; same == "quiet"; i++ {
		if name := fmt.Sprint("n", i); slot(name) == slot("quiet") {
			same = name
		}
	}
	w, last := watchName(t, e, "quiet"), watchName(t, e, same)
	for range 200 {
		cycle(t, ringer, same)
		cycle(t, ringer, "other")
	}
	signalled(t, last)
	if !silent(w) {
		t.Error("a signal for a name that is held")
	}
}

// TestStoppedWatches leave nothing behind.
func TestStoppedWatches(t *testing.T) {
	e := openNew(t)
	a, b := watchName(t, e, "t"), watchName(t, e, "t")
	a.Stop()
	cycle(t, e, "t")
	signalled(t, b)
	if !silent(a) {
		t.Error("a signal after Stop")
	}
	b.Stop()
	b.Stop()
	if n := len(e.watches.byName); n != 0 {
		t.Errorf("%d names are watched, want 0", n)
	}
}
