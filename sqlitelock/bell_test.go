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

// hears checks that listener is told by ringer of what is handed over to it,
// and until then of nothing.
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
	if !silent(w) { // the listener has looked at the bell
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

// TestOwnHandOver: a waiter in the same process needs no bell.
func TestOwnHandOver(t *testing.T) {
	e := openNew(t)
	hears(t, e, e)
	if e.bell.Read() != (bell.Content{}) {
		t.Error("the bell rang for somebody in this process")
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
