package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestOnceBesideRecord checks that a place for Once is not granted a name with a record, wherever
// the record came from.
func TestOnceBesideRecord(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	once, again := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
	once.Once, again.Once = true, true
	w := e.Watch(once.LeaseID) // before the first place, which starts the subscription
	defer w.Stop()
	first := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	once, again = queued(t, e, once, time.Minute, 2), queued(t, e, again, time.Minute, 3)
	last := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 4)
	told(t, w) // the subscription is made
	do(t, admin, "SET", keyspace{}.record("t"), string(holder.LeaseID)+"done")
	reply, err := e.Acquire(t.Context(), again)
	if err != nil || reply.Outcome != driver.Recorded || string(reply.Record) != "done" {
		t.Errorf("acquire: %+v, %v; want the record", reply, err)
	}
	wantIs(t, "refresh of who was told the record", refresh(t, e, again).Err, driver.ErrLost)
	stillWaits(t, e, once, 2)
	drivertest.Release(t, e, holder) // the first is granted the lock, and once is at the head
	if notice := told(t, w); notice.Token != 0 {
		t.Errorf("notice %+v, want to look", notice)
	}
	wantIs(t, "refresh of who asked for once", refresh(t, e, once).Err, driver.ErrLost)
	drivertest.Release(t, e, first)
	handed(t, e, last)
}

// TestCompleteDropsOncePlaces checks this wherever the places are in the queue.
func TestCompleteDropsOncePlaces(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	holder := shared("t", time.Minute)
	drivertest.Granted(t, e, holder)
	drivertest.Granted(t, e, shared("t", time.Minute))
	var waiters []driver.AcquireRequest
	var watches []driver.Watch
	for i := range 4 {
		req := drivertest.Request("t", time.Minute)
		req.Once = i%2 == 1
		w := e.Watch(req.LeaseID)
		defer w.Stop()
		waiters, watches = append(waiters, queued(t, e, req, time.Minute, i+1)), append(watches, w)
		if i == 0 {
			told(t, w) // the subscription is made
		}
	}
	err := e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: holder.LeaseID, Retention: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range waiters {
		if req.Once {
			if notice := told(t, watches[i]); notice.Token != 0 {
				t.Errorf("notice %+v, want to look", notice)
			}
			wantIs(t, "refresh", refresh(t, e, req).Err, driver.ErrLost)
			continue
		}
		stillWaits(t, e, req, i/2+1)
		if !silent(watches[i]) {
			t.Error("a notice for a place that stays")
		}
	}
}

// TestGroupKey checks that a value that does not have exactly the form of several leases is
// foreign.
func TestGroupKey(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	id := string(lockinfo.NewLeaseID())
	for _, value := range []string{"*" + id, "*" + id + " ", "*" + id + " x", "*" + id[1:] + " 0", "*" + strings.ToUpper(id) + "G 0", "* 0", id} {
		do(t, admin, "SET", "t", "1 "+value)
		if way := drivertest.Held(t, e, permits("t", 1, time.Minute)); way.ExpiresIn != lockinfo.Never {
			t.Errorf("%q: %+v", value, way)
		}
		drivertest.Held(t, e, shared("t", time.Minute))
	}
}
