package redislock

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestRecordKey checks that a record of any bytes and the greatest length is returned, and that its
// key lasts for the retention.
func TestRecordKey(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	for _, data := range [][]byte{{}, {0, 255, '\r', '\n'}, bytes.Repeat([]byte{7}, driver.MaxRecord)} {
		req := drivertest.Request("t", time.Minute)
		drivertest.Granted(t, e, req)
		complete := driver.CompleteRequest{Name: "t", LeaseID: req.LeaseID, Record: data, Retention: 10 * 365 * 24 * time.Hour}
		for range 2 {
			if err := e.Complete(t.Context(), complete); err != nil {
				t.Fatal(err)
			}
		}
		r, found, err := e.Recall(t.Context(), "t")
		if err != nil || !found || !bytes.Equal(r.Data, data) || r.ExpiresIn > complete.Retention || r.ExpiresIn < complete.Retention-time.Minute {
			t.Errorf("recall: %d bytes for %s, %v, %v", len(r.Data), r.ExpiresIn, found, err)
		}
		once := drivertest.Request("t", time.Minute)
		once.Once, once.Queue, once.WaiterTTL = true, true, time.Minute
		reply, err := e.Acquire(t.Context(), once)
		if err != nil || reply.Outcome != driver.Recorded || !bytes.Equal(reply.Record, data) {
			t.Errorf("acquire: outcome %d with %d bytes, %v", reply.Outcome, len(reply.Record), err)
		}
		if n := number(t, admin, "STRLEN", keyspace{}.record("t")); n != int64(len(data)+32) {
			t.Errorf("the record takes %d bytes", n)
		}
		complete.LeaseID = lockinfo.NewLeaseID()
		wantIs(t, "complete by another", e.Complete(t.Context(), complete), driver.ErrLost)
	}
}

// TestForeignRecord checks that the value of another program under the key of a record is an error,
// and ends no lease.
func TestForeignRecord(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	do(t, admin, "LPUSH", keyspace{}.record("t"), "x")
	once := drivertest.Request("t", time.Minute)
	once.Once = true
	_, err := e.Acquire(t.Context(), once)
	wantIs(t, "acquire", err, driver.ErrKindMismatch)
	_, _, err = e.Recall(t.Context(), "t")
	wantIs(t, "recall", err, driver.ErrKindMismatch)
	err = e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: once.LeaseID, Retention: time.Minute})
	wantIs(t, "complete without a lease", err, driver.ErrKindMismatch)
	if found, err := e.Forget(t.Context(), "t"); err != nil || !found {
		t.Errorf("forget: %v, %v", found, err)
	}
	do(t, admin, "SET", keyspace{}.record("t"), "short")
	r, found, err := e.Recall(t.Context(), "t")
	if err != nil || !found || len(r.Data) != 0 || r.ExpiresIn != lockinfo.Never {
		t.Errorf("recall: %+v, %v, %v", r, found, err)
	}
}

// TestCompleteHandsOver checks that the lock is handed over in the same step.
func TestCompleteHandsOver(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	waiter := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	err := e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: holder.LeaseID, Retention: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != waiter.LeaseID || lock.QueueLength != 0 {
		t.Errorf("inspect: %+v, %v; want the waiter's lease", lock, err)
	}
}

// listRecords returns how many records ListRecords yields, and its error.
func listRecords(t *testing.T, e *Engine) (n int, err error) {
	t.Helper()
	for _, err := range e.ListRecords(t.Context(), "") {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// TestRecordsBesideOtherKeys checks that values of other programs under keys of records are left
// out of a list, and that a record is not read whole.
func TestRecordsBesideOtherKeys(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	do(t, admin, "LPUSH", keyspace{}.record("list"), "x")
	do(t, admin, "SET", keyspace{}.record("short"), "x")
	for _, name := range []string{"a", "b"} {
		req := drivertest.Request(name, time.Minute)
		drivertest.Granted(t, e, req)
		err := e.Complete(t.Context(), driver.CompleteRequest{Name: name, LeaseID: req.LeaseID, Record: make([]byte, 1<<20), Retention: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n, err := listRecords(t, e); n != 2 || err != nil {
		t.Errorf("%d records, %v; want 2", n, err)
	}
	_, _, err := e.DescribeRecord(t.Context(), "list")
	wantIs(t, "describe a key of another type", err, driver.ErrKindMismatch)
	if r, found, err := e.DescribeRecord(t.Context(), "short"); found || err != nil {
		t.Errorf("a key that is too short: %+v, %v", r, err)
	}
	if r, found, err := e.DescribeRecord(t.Context(), "a"); !found || err != nil || r.Length != 1<<20 || len(r.Head) != driver.RecordHead {
		t.Errorf("%d bytes, of which %d are shown, %t, %v", r.Length, len(r.Head), found, err)
	}
}

// TestRecordsNeedRights checks that a user without the right gets an error, and not an empty list.
func TestRecordsNeedRights(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	do(t, admin, "SET", keyspace{}.record("a"), strings.Repeat("x", 40), "PX", "60000")
	do(t, admin, "ACL SETUSER app reset on >"+secret+" ~* &* +@all -strlen")
	e := open(t, "redis://app:"+secret+"@"+server.Addr)
	_, err := listRecords(t, e)
	wantIs(t, "list", err, driver.ErrPermission)
	_, _, err = e.DescribeRecord(t.Context(), "a")
	wantIs(t, "describe", err, driver.ErrPermission)
}
