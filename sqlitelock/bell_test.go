package sqlitelock

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
)

// hears checks that listener receives notices of the locks that ringer hands over to it, and no
// other notices.
func hears(t *testing.T, listener, ringer *Engine) {
	t.Helper()
	mine, other := drivertest.Request("mine", time.Minute), drivertest.Request("other", time.Minute)
	drivertest.Granted(t, ringer, mine)
	drivertest.Granted(t, ringer, other)
	nextMine, w := queued(t, listener, "mine")
	nextOther, last := queued(t, listener, "other")
	extend(t, ringer, mine)
	drivertest.Release(t, ringer, other)
	if got, want := drivertest.HandedOver(t, last), lastToken(t, listener, "other"); got != want {
		t.Errorf("notice of token %d, want %d", got, want)
	}
	if !silent(w) { // the listener has read the bell
		t.Error("a notice while the name is held")
	}
	drivertest.Release(t, ringer, mine)
	if got, want := drivertest.HandedOver(t, w), lastToken(t, listener, "mine"); got != want {
		t.Errorf("notice of token %d, want %d", got, want)
	}
	drivertest.Release(t, listener, nextMine)
	drivertest.Release(t, listener, nextOther)
}

func TestBell(t *testing.T) {
	e := openNew(t)
	for range 5 {
		hears(t, e, open(t, e.path))
	}
}

// TestOwnHandOver checks that a hand-over to a waiter of the same engine does not ring the bell.
func TestOwnHandOver(t *testing.T) {
	e := openNew(t)
	hears(t, e, e)
	if e.bell.Read() != (bell.Content{}) {
		t.Error("the bell rang for somebody in this process")
	}
}

// TestBellWithoutMessages checks that the bell is polled if the system refuses file notifications.
func TestBellWithoutMessages(t *testing.T) {
	e := openNew(t)
	e.newWatcher = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many") }
	for range 5 {
		hears(t, e, open(t, e.path))
	}
}

// TestBellIsMadeAnew checks that waiters notice the bell again after it was deleted or moved away.
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
