package sqlitelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// breakOf returns a request to break the lease with this token and all leases with smaller tokens.
func breakOf(name string, token uint64) driver.BreakRequest {
	return driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: name, Token: token, Older: true, Author: "ada", Reason: "stuck"}
}

// mustBreak breaks leases, and fails t unless their number is want.
func mustBreak(t *testing.T, e *Engine, req driver.BreakRequest, want int) []lockinfo.Broken {
	t.Helper()
	broken, err := e.Break(t.Context(), req)
	if err != nil || len(broken) != want {
		t.Fatalf("Break = %d leases, %v; want %d", len(broken), err, want)
	}
	return broken
}

// TestBreakOfMany checks that a break that takes several transactions breaks all leases.
func TestBreakOfMany(t *testing.T) {
	const many = 2*breakRows + 10
	e := open(t, filepath.Join(t.TempDir(), "locks.db"))
	var last uint64
	for range many {
		req := drivertest.Request("a", time.Hour)
		req.Mode = lockinfo.Shared
		last = drivertest.Granted(t, e, req)
	}
	writer := inQueue(drivertest.Request("a", time.Hour), time.Hour)
	placed(t, e, writer, 1)
	req := breakOf("a", last)
	mustBreak(t, e, req, many)
	lock, err := e.Inspect(t.Context(), "a")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != writer.LeaseID {
		t.Errorf("holders %+v, %v; want the writer who waited", lock.Holders, err)
	}
	mustBreak(t, e, req, driver.MaxBreaks) // a repeat returns the breaks that are remembered
	drivertest.Release(t, e, writer)
}

// TestBreaksOutliveReboot checks that Breaks reports a break after a reboot, until BreakMemory has
// passed on the wall clock. INVARIANT I11.
func TestBreaksOutliveReboot(t *testing.T) {
	h := newHost("one boot")
	path := filepath.Join(t.TempDir(), "locks.db")
	e := h.open(t, path)
	mustBreak(t, e, breakOf("a", drivertest.Granted(t, e, drivertest.Request("a", time.Hour))), 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wall := h.wall
	h = newHost("another boot")
	h.boot, h.wall = time.Second, wall.Add(time.Hour)
	e = h.open(t, path)
	broken, err := e.Breaks(t.Context(), "a")
	if err != nil || len(broken) != 1 || broken[0].Ago != time.Hour || broken[0].Reason != "stuck" {
		t.Errorf("Breaks after the reboot = %+v, %v; want one, an hour ago", broken, err)
	}
	h.wall = wall.Add(driver.BreakMemory)
	if broken, err := e.Breaks(t.Context(), "a"); err != nil || len(broken) != 0 {
		t.Errorf("Breaks after BreakMemory = %+v, %v; want none", broken, err)
	}
	drivertest.Granted(t, e, drivertest.Request("b", time.Hour)) // this grant sweeps
	if kept := number(t, plain(t, e.path), `SELECT count(*) FROM broken`); kept != 0 {
		t.Errorf("%d records are kept after BreakMemory and a sweep, want none", kept)
	}
}

// TestBreakWithoutAlarm checks that a lock can be broken if the alarm can be neither rung nor
// heard. The holder's renewal then reports the loss.
func TestBreakWithoutAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	if err := os.Mkdir(path+"-alarm", 0o700); err != nil {
		t.Fatal(err)
	}
	e := open(t, path)
	stop := e.OnLoss(func(driver.Loss) {})
	defer stop()
	req := drivertest.Request("a", time.Hour)
	token := drivertest.Granted(t, e, req)
	time.Sleep(2 * driver.LossStart)
	mustBreak(t, e, breakOf("a", token), 1)
	err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: req.LeaseID, TTL: time.Hour}})[0]
	if !errors.Is(err, driver.ErrLost) {
		t.Errorf("Extend = %v, want ErrLost", err)
	}
}

// TestAlarmIsMadeAnew checks that losses are reported after the alarm was deleted.
func TestAlarmIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	e, other := open(t, path), open(t, path)
	losses := make(chan driver.Loss, 10)
	stop := e.OnLoss(func(l driver.Loss) { losses <- l })
	defer stop()
	for i, name := range []string{"a", "b"} {
		req := drivertest.Request(name, time.Hour)
		token := drivertest.Granted(t, e, req)
		time.Sleep(2 * driver.LossStart)
		if i > 0 {
			if err := os.Remove(path + "-alarm"); err != nil {
				t.Fatal(err)
			}
		}
		mustBreak(t, other, breakOf(name, token), 1)
		select {
		case l := <-losses:
			if l.LeaseID != req.LeaseID {
				t.Errorf("received %+v", l)
			}
		case <-time.After(drivertest.Patience):
			t.Fatalf("no report of the loss of %q", name)
		}
	}
}
