package sqlitelock

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// completed writes a record with a retention, and returns the request of the lease that wrote it.
func completed(t testing.TB, e *Engine, name, data string, retention time.Duration) driver.AcquireRequest {
	t.Helper()
	req := drivertest.Request(name, time.Minute)
	drivertest.Granted(t, e, req)
	complete(t, e, req, data, retention)
	return req
}

func complete(t testing.TB, e *Engine, req driver.AcquireRequest, data string, retention time.Duration) {
	t.Helper()
	err := e.Complete(t.Context(), driver.CompleteRequest{Name: req.Name, LeaseID: req.LeaseID, Record: []byte(data), Retention: retention})
	if err != nil {
		t.Fatalf("complete: %v", err)
	}
}

// recalled checks that the name has a record, and returns the time until its expiry.
func recalled(t testing.TB, e *Engine, name, data string) time.Duration {
	t.Helper()
	r, found, err := e.Recall(t.Context(), name)
	if err != nil || !found || string(r.Data) != data {
		t.Fatalf("recall: %.20q, %t, %v; want %.20q", r.Data, found, err, data)
	}
	return r.ExpiresIn
}

// unrecorded checks that the name has no record for Recall, for Forget, and for an acquire with
// Once.
func unrecorded(t testing.TB, e *Engine, name string) {
	t.Helper()
	if r, found, err := e.Recall(t.Context(), name); err != nil || found {
		t.Errorf("recall: %.20q, %v; want nothing", r.Data, err)
	}
	if found, err := e.Forget(t.Context(), name); err != nil || found {
		t.Errorf("forget: %t, %v; want that there is nothing", found, err)
	}
	req := drivertest.Request(name, time.Minute)
	req.Once = true
	drivertest.Granted(t, e, req)
	drivertest.Release(t, e, req)
}

// TestRecordSurvives checks that records survive closing the database, and a reboot.
func TestRecordSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	h := newHost("one boot")
	e := h.open(t, path)
	by := completed(t, e, "t", "42", 48*time.Hour)
	completed(t, e, "empty", "", 48*time.Hour)
	_ = e.Close()
	e = h.open(t, path)
	if left := recalled(t, e, "t", "42"); left != 48*time.Hour {
		t.Errorf("after opening again %s are left, want 48h", left)
	}
	complete(t, e, by, "43", time.Hour) // a repeat
	_ = e.Close()

	wall := h.wall
	h = newHost("another boot")
	h.boot, h.wall = time.Second, wall.Add(20*time.Hour)
	e = h.open(t, path)
	if left := recalled(t, e, "t", "42"); left < 28*time.Hour || left > 28*time.Hour+time.Millisecond {
		t.Errorf("after the reboot %s are left, want 28h", left)
	}
	recalled(t, e, "empty", "")
	once := drivertest.Request("t", time.Minute)
	once.Once = true
	if reply, err := e.Acquire(t.Context(), once); err != nil || reply.Outcome != driver.Recorded || string(reply.Record) != "42" {
		t.Errorf("acquire after the reboot: %+v, %v; want the record", reply, err)
	}
	complete(t, e, by, "43", time.Hour) // still a repeat
	recalled(t, e, "t", "42")
	h.pass(28*time.Hour-time.Millisecond, 28*time.Hour-time.Millisecond)
	recalled(t, e, "t", "42")
	h.pass(2*time.Millisecond, 2*time.Millisecond)
	unrecorded(t, e, "t")
	wantIs(t, "complete after the retention", e.Complete(t.Context(), driver.CompleteRequest{
		Name: "t", LeaseID: by.LeaseID, Retention: time.Hour,
	}), driver.ErrLost)
}

// TestRecordAndWallClock checks that a step of the wall clock neither ends a record nor keeps it,
// in the boot that wrote it.
func TestRecordAndWallClock(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	for _, step := range []time.Duration{1000 * time.Hour, -2000 * time.Hour} {
		completed(t, e, "t", "42", time.Hour)
		h.pass(time.Hour-1, step)
		if left := recalled(t, e, "t", "42"); left != 1 {
			t.Errorf("after a step of %s %s are left, want 1ns", step, left)
		}
		drivertest.Cycle(t, e, "t")
		if found, err := e.Forget(t.Context(), "t"); err != nil || !found {
			t.Errorf("forget: %t, %v", found, err)
		}
		completed(t, e, "t", "43", time.Hour)
		h.pass(time.Hour, step)
		unrecorded(t, e, "t")
	}
}

// TestCompleteIsFlushed checks that Complete is flushed to the disk, and other requests are not.
func TestCompleteIsFlushed(t *testing.T) {
	const normal, full = 1, 2
	e := openNew(t)
	var levels []int64
	boot := e.clock.boot // read inside the transaction
	e.clock.boot = func() (time.Duration, error) {
		levels = append(levels, number(t, e.conn, `PRAGMA synchronous`))
		return boot()
	}
	req := drivertest.Request("t", time.Minute)
	err := e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: req.LeaseID, Retention: time.Hour})
	wantIs(t, "complete without a lease", err, driver.ErrLost)
	extends := func() {
		levels = nil
		drivertest.Granted(t, e, req)
		extend(t, e, req)
		if slices.Contains(levels, full) || !slices.Contains(levels, normal) {
			t.Errorf("the transactions beside Complete run with the levels %d, want %d", levels, normal)
		}
	}
	extends()
	levels = nil
	complete(t, e, req, "42", time.Hour)
	if !slices.Equal(levels, []int64{full}) {
		t.Errorf("Complete runs with the levels %d, want %d", levels, full)
	}
	extends()
}

// TestCompleteEndsTheLease checks that Complete ends the lease, hands the lock over, and ends the
// places of all waiters with Once.
func TestCompleteEndsTheLease(t *testing.T) {
	e := openNew(t)
	waiter := open(t, e.path)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	askOnce := func() (driver.AcquireRequest, driver.Watch) {
		once := inQueue(drivertest.Request("t", time.Minute), time.Minute)
		once.Once = true
		w := waiter.Watch(once.LeaseID)
		t.Cleanup(w.Stop)
		drivertest.Held(t, waiter, once)
		silent(w) // the listener has started
		return once, w
	}
	first, firstWatch := askOnce()
	next, after := queued(t, waiter, "t")
	queued(t, waiter, "t") // this place stays between them
	last, lastWatch := askOnce()
	complete(t, e, req, "42", time.Hour)
	drivertest.HandedOver(t, after)
	told(t, firstWatch)
	told(t, lastWatch)
	for _, once := range []driver.AcquireRequest{first, last} {
		wantIs(t, "refresh", refresh(t, waiter, once).Err, driver.ErrLost)
	}
	if lock, err := e.Inspect(t.Context(), "t"); err != nil || lock.QueueLength != 1 {
		t.Errorf("inspect: %+v, %v; want one place", lock, err)
	}
	wantIs(t, "extend", e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0], driver.ErrLost)
	wantIs(t, "complete by another", e.Complete(t.Context(), driver.CompleteRequest{
		Name: "t", LeaseID: lockinfo.NewLeaseID(), Record: []byte("43"), Retention: time.Hour,
	}), driver.ErrLost)
	recalled(t, e, "t", "42")
	drivertest.Granted(t, waiter, next)
	complete(t, waiter, next, "44", time.Hour)
	recalled(t, e, "t", "44")
}

// TestOncePlaceMeetsRecord checks that a place with Once is given up if the name has a record, even
// one that no Complete has written.
func TestOncePlaceMeetsRecord(t *testing.T) {
	e := openNew(t)
	held := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, held)
	once := inQueue(drivertest.Request("t", time.Minute), time.Minute)
	once.Once = true
	w := e.Watch(once.LeaseID)
	defer w.Stop()
	placed(t, e, once, 1)
	silent(w)
	next, _ := queued(t, e, "t")
	must(t, plain(t, e.path), `INSERT INTO record VALUES ('t', 'x', '`+e.clock.bootID+`', 9e18, 9e18, x'79')`)
	drivertest.Release(t, e, held)
	told(t, w)
	drivertest.Granted(t, e, next)
	wantIs(t, "refresh", refresh(t, e, once).Err, driver.ErrLost)
}

// TestLargeRecord checks a record of the greatest length.
func TestLargeRecord(t *testing.T) {
	e := openNew(t)
	data := string(bytes.Repeat([]byte{0, 0xff, 'x', '\''}, driver.MaxRecord/4))
	completed(t, e, "t", data, time.Hour)
	recalled(t, open(t, e.path), "t", data)
}
