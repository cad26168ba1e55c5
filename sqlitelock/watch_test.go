package sqlitelock

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
)

// silent reports whether w has no notice now. If there is a notice, silent receives it.
func silent(w driver.Watch) bool {
	select {
	case <-w.C():
		return false
	default:
		return true
	}
}

// told waits for a notice without a token, which means that the waiter must look.
func told(t testing.TB, w driver.Watch) {
	t.Helper()
	select {
	case notice := <-w.C():
		if notice.Token != 0 {
			t.Fatalf("notice of token %d, want a look", notice.Token)
		}
	case <-time.After(drivertest.Patience):
		t.Fatal("no notice")
	}
}

// queued gets the next place in the queue of name, and receives the notice that the start of the
// listener may cause.
func queued(t testing.TB, e *Engine, name string) (driver.AcquireRequest, driver.Watch) {
	t.Helper()
	req, w := drivertest.Queued(t, e, name, time.Minute)
	silent(w)
	return req, w
}

// lastToken returns the last token of a name.
func lastToken(t testing.TB, e *Engine, name string) uint64 {
	t.Helper()
	lock, err := e.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return lock.LastToken
}

// extend lengthens the lease of req, which must be live.
func extend(t testing.TB, e *Engine, req driver.AcquireRequest) {
	t.Helper()
	err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour}})[0]
	if err != nil {
		t.Fatal(err)
	}
}

// TestLostRings checks that the listener looks at all its waiters when rings may have been lost.
func TestLostRings(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	first, w := queued(t, e, "t")
	_, behind := queued(t, e, "t")
	must(t, plain(t, e.path), `BEGIN; DELETE FROM lease; INSERT INTO lease
		SELECT name, lease_id, 7, mode, permit_limit, permits, holder, boot_id, asked, expiry, 0
		FROM place WHERE lease_id = '`+string(first.LeaseID)+`';
		DELETE FROM place WHERE lease_id = '`+string(first.LeaseID)+`'; COMMIT`)
	if err := os.Remove(e.path + "-bell"); err != nil {
		t.Fatal(err)
	}
	if token := drivertest.HandedOver(t, w); token != 7 {
		t.Errorf("notice of token %d, want 7", token)
	}
	if !silent(behind) {
		t.Error("a notice for somebody who still waits")
	}
}

// TestListenerStarts checks that the listener starts with the first place, and then notifies all
// watches that exist already. Later watches get no such notice.
func TestListenerStarts(t *testing.T) {
	e := openNew(t)
	started := 0
	e.newWatcher = func() (*fsnotify.Watcher, error) { started++; return fsnotify.NewWatcher() }
	early := e.Watch(lockinfo.NewLeaseID())
	defer early.Stop()
	held := drivertest.Request("t", time.Minute)
	held.Queue, held.WaiterTTL = true, time.Minute
	drivertest.Granted(t, e, held)
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	if started != 0 || !silent(early) {
		t.Errorf("%d listeners without a place", started)
	}
	_, first := drivertest.Queued(t, e, "t", time.Minute)
	told(t, early)
	told(t, first)
	_, second := drivertest.Queued(t, e, "t", time.Minute)
	if started != 1 || !silent(early) || !silent(first) || !silent(second) {
		t.Errorf("%d listeners, or a notice without a reason", started)
	}
}

// TestHeedsBeforeThePlaceIsGiven checks that the engine heeds the bell for a lease ID before the
// lock can be handed over to that lease ID.
func TestHeedsBeforeThePlaceIsGiven(t *testing.T) {
	e := openNew(t)
	ringer := open(t, e.path)
	first := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, ringer, first)
	queued(t, e, "t") // the listener runs
	other := plain(t, e.path)
	must(t, other, `BEGIN IMMEDIATE`)
	req := drivertest.Request("t", time.Minute)
	req.Queue, req.WaiterTTL = true, time.Minute
	w := e.Watch(req.LeaseID)
	defer w.Stop()
	done := make(chan error)
	go func() {
		_, err := e.Acquire(t.Context(), req)
		done <- err
	}()
	drivertest.Eventually(t, "the request has its turn", func() bool { return len(e.turn) == 1 })
	heeded := e.watches.Requested(func(id lockinfo.LeaseID) bool { return id == req.LeaseID })
	must(t, other, `ROLLBACK`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(heeded) != 1 {
		t.Error("the bell is not heeded before the transaction")
	}
}

// TestOnlyHandOverRings checks that the bell rings only for a hand-over.
func TestOnlyHandOverRings(t *testing.T) {
	e := openNew(t)
	waiter := open(t, e.path)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	quiet := e.bell.Read()
	drivertest.Granted(t, e, req)
	drivertest.Cycle(t, e, "other")
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	extend(t, e, req)
	drivertest.Queued(t, waiter, "t", time.Minute)
	lost := driver.ReleaseRequest{Name: "t", LeaseID: lockinfo.NewLeaseID(), Cancel: true}
	wantIs(t, "cancel", e.Release(t.Context(), lost), driver.ErrLost)
	if e.bell.Read() != quiet {
		t.Error("the bell rang though nothing was handed over")
	}
	drivertest.Release(t, e, req)
	if e.bell.Read() == quiet {
		t.Error("handing over did not ring the bell")
	}
}

// TestKeepForTellsHead checks that a release with KeepFor notifies only the head of the queue,
// because the name may become free earlier than the lease would have expired.
func TestKeepForTellsHead(t *testing.T) {
	e := openNew(t)
	waiter := open(t, e.path)
	for range 3 { // every release notifies
		req := drivertest.Request("t", time.Hour)
		drivertest.Granted(t, e, req)
		first, w := queued(t, waiter, "t")
		second, behind := queued(t, waiter, "t")
		third, last := queued(t, e, "t")
		for _, tell := range []driver.Watch{w, nil} {
			err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, KeepFor: 100 * time.Millisecond})
			if tell == nil {
				wantIs(t, "a repeat", err, driver.ErrLost)
				continue
			}
			wantIs(t, "release", err, nil)
			told(t, tell)
		}
		drivertest.Eventually(t, "the name is open again", func() bool {
			reply := waiter.Refresh(t.Context(), []driver.RefreshRequest{{Name: "t", LeaseID: first.LeaseID, WaiterTTL: time.Minute}})[0]
			return reply.Err == nil && reply.Outcome == driver.Granted
		})
		if !silent(behind) || !silent(last) {
			t.Error("a notice for somebody who is not the first")
		}
		drivertest.Release(t, e, first)
		drivertest.HandedOver(t, behind)
		drivertest.Release(t, e, second)
		drivertest.Release(t, e, third)
	}
}

// TestSharedCell checks that a ring for another lease ID with the same cell notifies a waiter only
// if the waiter has lost its place, and only once.
func TestSharedCell(t *testing.T) {
	e := openNew(t)
	ringer := open(t, e.path)
	quiet := drivertest.Request("quiet", time.Hour)
	drivertest.Granted(t, ringer, quiet)
	req, w := queued(t, e, "quiet")
	ring := func() { // for a lease ID with the same cell
		t.Helper()
		held, next := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
		for bell.Cell(next.LeaseID) != bell.Cell(req.LeaseID) {
			next.LeaseID = lockinfo.NewLeaseID()
		}
		next.Queue, next.WaiterTTL = true, time.Minute
		drivertest.Granted(t, ringer, held)
		last := e.Watch(next.LeaseID)
		defer last.Stop()
		drivertest.Held(t, e, next)
		drivertest.Release(t, ringer, held)
		drivertest.HandedOver(t, last)
		drivertest.Release(t, ringer, next)
	}
	for range 20 {
		ring()
	}
	if !silent(w) {
		t.Error("a notice of what was handed over to another")
	}
	must(t, plain(t, e.path), `DELETE FROM place WHERE name = 'quiet'`)
	ring()
	told(t, w)
	for range 20 {
		ring()
	}
	if !silent(w) {
		t.Error("received twice the same")
	}
}

// TestNoticeAfterTheCommit checks that a failed commit causes no notice.
func TestNoticeAfterTheCommit(t *testing.T) {
	e := openNew(t)
	held := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, held)
	_, w := queued(t, e, "t")
	onCommit(t, e, func() int32 { return 1 })
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: held.LeaseID}); err == nil {
		t.Error("a failed commit released the lock")
	}
	if !silent(w) {
		t.Error("a notice of a failed commit")
	}
	onCommit(t, e, nil)
	drivertest.Release(t, e, held)
	drivertest.HandedOver(t, w)
}

// TestUnreadableNotice checks that a waiter gets a notice to look itself if the listener cannot
// read its state.
func TestUnreadableNotice(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	req, w := queued(t, e, "t")
	h.mu.Lock()
	h.fault = errors.New("no clock")
	h.mu.Unlock()
	e.bell.Ring([]lockinfo.LeaseID{req.LeaseID})
	told(t, w)
}

// TestStoppedWatches checks that a stopped watch gets no notice, and that nothing of it is left.
func TestStoppedWatches(t *testing.T) {
	e := openNew(t)
	held := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, held)
	req, a := queued(t, e, "t")
	b := e.Watch(req.LeaseID)
	a.Stop()
	drivertest.Release(t, open(t, e.path), held)
	drivertest.HandedOver(t, b)
	if !silent(a) {
		t.Error("a notice after Stop")
	}
	b.Stop()
	b.Stop()
	e.watches.Each(func(id lockinfo.LeaseID, _ *bell.Waiter) { t.Errorf("%s is watched after the last Stop", id) })
}
