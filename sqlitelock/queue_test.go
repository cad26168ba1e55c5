package sqlitelock

import (
	"fmt"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// of returns req with another mode.
func of(req driver.AcquireRequest, mode lockinfo.Mode) driver.AcquireRequest {
	req.Mode = mode
	return req
}

// inQueue returns req as a request for a place.
func inQueue(req driver.AcquireRequest, waiterTTL time.Duration) driver.AcquireRequest {
	req.Queue, req.WaiterTTL = true, waiterTTL
	return req
}

// placed sends a request that must be refused, and checks the place in the reply.
func placed(t testing.TB, e *Engine, req driver.AcquireRequest, place int) {
	t.Helper()
	if got := drivertest.Held(t, e, req).Place; got != place {
		t.Errorf("place %d, want %d", got, place)
	}
}

// refresh renews a place for a minute.
func refresh(t testing.TB, e *Engine, req driver.AcquireRequest) driver.RefreshReply {
	t.Helper()
	return e.Refresh(t.Context(), []driver.RefreshRequest{{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: time.Minute}})[0]
}

// commits returns how many commits of e write something while f runs, and calls the functions in
// each at each of these commits.
func commits(t testing.TB, e *Engine, f func(), each ...func()) (n int) {
	t.Helper()
	onCommit(t, e, func() int32 {
		n++
		for _, do := range each {
			do()
		}
		return 0
	})
	defer onCommit(t, e, nil)
	f()
	return n
}

func onCommit(t testing.TB, e *Engine, f func() int32) {
	t.Helper()
	e.conn.Conn.(sqlite.HookRegisterer).RegisterCommitHook(f)
}

// TestTransactions checks that an acquire of many names, a batch of refreshes and a hand-over are
// one transaction each.
func TestTransactions(t *testing.T) {
	e := openNew(t)
	var all []driver.AcquireRequest
	for i := range driver.MaxBatch {
		all = append(all, drivertest.Request(fmt.Sprint("all", i), time.Minute))
	}
	var reply driver.AllReply
	n := commits(t, e, func() {
		var err error
		if reply, err = e.AcquireAll(t.Context(), all); err != nil {
			t.Error(err)
		}
	})
	if n != 1 || reply.Outcome != driver.Granted || len(reply.Tokens) != len(all) {
		t.Errorf("%d commits, %+v; want 1, and all granted", n, reply)
	}
	if n := commits(t, e, func() { drivertest.Granted(t, e, inQueue(drivertest.Request("free", time.Minute), time.Minute)) }); n != 1 {
		t.Errorf("%d commits for a free name, want 1", n)
	}
	var places []driver.RefreshRequest
	for _, req := range all {
		waiter := inQueue(drivertest.Request(req.Name, time.Minute), time.Minute)
		placed(t, e, waiter, 1)
		places = append(places, driver.RefreshRequest{Name: req.Name, LeaseID: waiter.LeaseID, WaiterTTL: time.Hour})
	}
	n = commits(t, e, func() {
		for _, reply := range e.Refresh(t.Context(), places) {
			if reply.Err != nil || reply.Outcome != driver.Held || reply.Place != 1 {
				t.Errorf("refresh: %+v", reply)
			}
		}
	})
	if n != 1 {
		t.Errorf("%d commits for a batch of places, want 1", n)
	}
	if n := commits(t, e, func() { drivertest.Release(t, e, all[0]) }); n != 1 {
		t.Errorf("%d commits to hand over, want 1", n)
	}
}

// TestAcquireAllOrNothing checks that AcquireAll grants nothing if one name is held or of another
// kind, or if the commit fails.
func TestAcquireAllOrNothing(t *testing.T) {
	e := openNew(t)
	conn := plain(t, e.path)
	drivertest.Granted(t, e, drivertest.Request("held", time.Minute))
	drivertest.Granted(t, e, of(drivertest.Request("counted", time.Minute), lockinfo.Permits(1, 3)))
	all := []driver.AcquireRequest{
		drivertest.Request("a", time.Minute), drivertest.Request("b", time.Minute), drivertest.Request("held", time.Minute),
	}
	reply, err := e.AcquireAll(t.Context(), all)
	if err != nil || reply.Outcome != driver.Held || reply.Refused != 2 || reply.ExpiresIn <= 0 || reply.Holder.PID == 0 {
		t.Errorf("acquire all: %+v, %v; want the third held", reply, err)
	}
	all[2].Name = "counted"
	_, err = e.AcquireAll(t.Context(), all)
	wantIs(t, "acquire all", err, driver.ErrKindMismatch)
	all[2].Name = "c"
	onCommit(t, e, func() int32 { return 1 })
	if _, err := e.AcquireAll(t.Context(), all); err == nil {
		t.Error("a failed commit granted the locks")
	}
	onCommit(t, e, nil)
	if n := number(t, conn, `SELECT count(*) FROM lease`); n != 2 {
		t.Errorf("%d leases after refusals, want the 2 of before", n)
	}
	reply, err = e.AcquireAll(t.Context(), all)
	if err != nil || reply.Outcome != driver.Granted {
		t.Errorf("acquire all: %+v, %v; want a grant", reply, err)
	}
	again, err := e.AcquireAll(t.Context(), all)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(reply) {
		t.Errorf("a repeat: %+v, %v; want %+v", again, err, reply)
	}
}

// TestRefusalsOnlyRead checks that requests that need no place are refused while another process
// keeps the write lock.
func TestRefusalsOnlyRead(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(2, 3)))
	placed(t, e, inQueue(of(drivertest.Request("t", time.Minute), lockinfo.Permits(2, 3)), time.Minute), 1)
	writer := drivertest.Request("done", time.Minute)
	drivertest.Granted(t, e, writer)
	if err := e.Complete(t.Context(), driver.CompleteRequest{Name: "done", LeaseID: writer.LeaseID, Record: []byte("42"), Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	must(t, plain(t, e.path), `BEGIN IMMEDIATE`)
	placed(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 3)), 0) // it would fit, but must not barge
	placed(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(2, 3)), 0)
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	wantIs(t, "another kind", err, driver.ErrKindMismatch)
	once := inQueue(drivertest.Request("done", time.Minute), time.Minute)
	once.Once = true
	reply, err := e.Acquire(t.Context(), once)
	if err != nil || reply.Outcome != driver.Recorded || string(reply.Record) != "42" {
		t.Errorf("acquire once: %+v, %v; want the record", reply, err)
	}
	if _, found, err := e.Recall(t.Context(), "done"); err != nil || !found {
		t.Errorf("recall: %t, %v", found, err)
	}
}

// TestWhoNoticesHandsOver checks that the lock is handed over after an expiry by the next acquire
// for the name, even by a refused one, and by a refresh of another waiter.
func TestWhoNoticesHandsOver(t *testing.T) {
	for what, notice := range map[string]func(t *testing.T, e *Engine, last driver.AcquireRequest){
		"an acquire without a place": func(t *testing.T, e *Engine, _ driver.AcquireRequest) {
			placed(t, e, drivertest.Request("t", time.Minute), 0)
		},
		"an acquire with a place": func(t *testing.T, e *Engine, _ driver.AcquireRequest) {
			placed(t, e, inQueue(drivertest.Request("t", time.Minute), time.Minute), 2)
		},
		"an acquire of another kind": func(t *testing.T, e *Engine, _ driver.AcquireRequest) {
			_, err := e.Acquire(t.Context(), of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 3)))
			wantIs(t, "another kind", err, driver.ErrKindMismatch)
		},
		"an acquire of several": func(t *testing.T, e *Engine, _ driver.AcquireRequest) {
			reply, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{drivertest.Request("x", time.Minute), drivertest.Request("t", time.Minute)})
			if err != nil || reply.Outcome != driver.Held || reply.Refused != 1 {
				t.Errorf("acquire all: %+v, %v", reply, err)
			}
		},
		"a refresh by the next": func(t *testing.T, e *Engine, last driver.AcquireRequest) {
			if reply := refresh(t, e, last); reply.Err != nil || reply.Outcome != driver.Held || reply.Place != 1 {
				t.Errorf("refresh: %+v", reply)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost("boot")
			e := openOn(t, h)
			ringer := h.open(t, e.path)
			drivertest.Cycle(t, ringer, "x") // after this, ringer does not sweep
			drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
			dead, head, next := inQueue(drivertest.Request("t", time.Hour), time.Minute), inQueue(drivertest.Request("t", time.Hour), time.Hour),
				inQueue(drivertest.Request("t", time.Hour), time.Hour)
			placed(t, e, dead, 1)
			w := e.Watch(head.LeaseID)
			defer w.Stop()
			placed(t, e, head, 2)
			placed(t, e, next, 3)
			h.pass(time.Minute, 0) // ends the lease and the first place
			notice(t, ringer, next)
			token := drivertest.HandedOver(t, w)
			lock, err := e.Inspect(t.Context(), "t")
			if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != head.LeaseID || lock.Holders[0].Token != token {
				t.Errorf("inspect: %+v, %v; want the second waiter to hold the lock", lock, err)
			}
			rows := number(t, plain(t, e.path), `SELECT (SELECT count(*) FROM lease) + (SELECT count(*) FROM place WHERE lease_id = '`+string(dead.LeaseID)+`')`)
			if rows != 1 {
				t.Errorf("%d rows of leases and of the dead waiter, want that of the lease", rows)
			}
			if left := lock.Holders[0].ExpiresIn; left != time.Hour-time.Minute {
				t.Errorf("the lease ends in %s, want as long as the place had", left)
			}
		})
	}
}

// TestPlaceEnds checks that a place expires to the nanosecond, and that requests extend it but
// never shorten it.
func TestPlaceEnds(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
	req := inQueue(drivertest.Request("t", time.Hour), 10*time.Minute)
	placed(t, e, req, 1)
	h.pass(time.Minute, 0)
	if reply := refresh(t, e, req); reply.Err != nil || reply.Place != 1 {
		t.Errorf("refresh: %+v", reply)
	}
	placed(t, e, inQueue(req, time.Minute), 1)
	h.pass(9*time.Minute-1, 0)
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || lock.QueueLength != 1 || lock.Queue[0].ExpiresIn != 1 || lock.Queue[0].Since != 10*time.Minute-1 {
		t.Errorf("inspect: %+v, %v; want 1 ns left of the place", lock, err)
	}
	placed(t, e, req, 1)
	h.pass(10*time.Minute, 0)
	wantIs(t, "refresh at the end of the place", refresh(t, e, req).Err, driver.ErrLost)
	placed(t, e, inQueue(drivertest.Request("t", time.Hour), time.Minute), 1)
}

// TestSharedRun checks that consecutive shared requests get the lock together, but not those behind
// an exclusive one, and that a downgrade grants them the lock.
func TestSharedRun(t *testing.T) {
	e := openNew(t)
	holder := drivertest.Request("t", time.Minute)
	token := drivertest.Granted(t, e, holder)
	var reqs []driver.AcquireRequest
	for i, mode := range []lockinfo.Mode{lockinfo.Shared, lockinfo.Shared, lockinfo.Exclusive, lockinfo.Shared} {
		req := inQueue(of(drivertest.Request("t", time.Minute), mode), time.Minute)
		placed(t, e, req, i+1)
		reqs = append(reqs, req)
	}
	if err := e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "t", LeaseID: holder.LeaseID}); err != nil {
		t.Fatal(err)
	}
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || lock.Mode != lockinfo.Shared || len(lock.Holders) != 3 || lock.QueueLength != 2 || lock.Holders[0].Token != token {
		t.Fatalf("after the downgrade: %+v, %v; want three to share it, and two to wait", lock, err)
	}
	if lock.Queue[0].LeaseID != reqs[2].LeaseID || lock.Queue[0].Mode != lockinfo.Exclusive {
		t.Errorf("the first of the queue is %+v, want the exclusive request", lock.Queue[0])
	}
	for _, req := range []driver.AcquireRequest{reqs[0], holder, reqs[1]} {
		placed(t, e, reqs[3], 2)
		drivertest.Release(t, e, req)
	}
	drivertest.Granted(t, e, reqs[2])
	drivertest.Release(t, e, reqs[2])
	drivertest.Granted(t, e, reqs[3])
}

// TestDowngradeOfPermit checks that a lease of a semaphore cannot be downgraded.
func TestDowngradeOfPermit(t *testing.T) {
	e := openNew(t)
	req := of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 3))
	drivertest.Granted(t, e, req)
	wantIs(t, "downgrade", e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "t", LeaseID: req.LeaseID}), driver.ErrLost)
	drivertest.Granted(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(2, 3)))
}

// TestKeptPermit checks that a permit that KeepFor keeps closed still counts after its lease ID got
// another permit.
func TestKeptPermit(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	req := of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 3))
	for range 2 {
		drivertest.Granted(t, e, req)
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, KeepFor: time.Hour})
		wantIs(t, "release", err, nil)
	}
	drivertest.Granted(t, e, req)
	drivertest.Held(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 3)))
	if lock, err := e.Inspect(t.Context(), "t"); err != nil || len(lock.Holders) != 3 || !lock.Holders[1].Released || lock.Holders[2].Released {
		t.Errorf("inspect: %+v, %v; want two released holders and one that is not", lock, err)
	}
	drivertest.Release(t, e, req)
	drivertest.Held(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(2, 3)))
	h.pass(time.Hour, 0)
	drivertest.Granted(t, e, of(drivertest.Request("t", time.Minute), lockinfo.Permits(3, 3)))
}

// TestQueueWithoutTokens checks that no request gets the lock when the tokens of its name are used
// up. Other requests work, and no place is lost.
func TestQueueWithoutTokens(t *testing.T) {
	e := openNew(t)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	req := inQueue(drivertest.Request("t", time.Minute), time.Minute)
	placed(t, e, req, 1)
	conn := plain(t, e.path)
	must(t, conn, `UPDATE token SET last_token = 9007199254740990`)
	drivertest.Release(t, e, holder)
	wantIs(t, "refresh", refresh(t, e, req).Err, driver.ErrUnavailable)
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	wantIs(t, "acquire", err, driver.ErrUnavailable)
	_, err = e.Acquire(t.Context(), of(drivertest.Request("t", time.Minute), lockinfo.Permits(1, 2)))
	wantIs(t, "acquire of another kind", err, driver.ErrKindMismatch)
	if lock, err := e.Inspect(t.Context(), "t"); err != nil || len(lock.Holders) != 0 || lock.QueueLength != 1 {
		t.Errorf("inspect: %+v, %v; want one place", lock, err)
	}
	must(t, conn, `UPDATE token SET last_token = 9007199254740986`)
	if reply := refresh(t, e, req); reply.Err != nil || reply.Token != driver.MaxToken {
		t.Errorf("refresh: %+v, want the last token", reply)
	}
}

// TestPlaceKeepsMinToken checks that a hand-over grants a token above the MinToken of the place.
func TestPlaceKeepsMinToken(t *testing.T) {
	e := openNew(t)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	req := inQueue(drivertest.Request("t", time.Minute), time.Minute)
	req.MinToken = uint64(time.Now().Add(driver.MaxTokenLead / 2).UnixMicro())
	placed(t, e, req, 1)
	drivertest.Release(t, e, holder)
	if got := lastToken(t, e, "t"); got != req.MinToken+1 {
		t.Errorf("token %d, want %d", got, req.MinToken+1)
	}
}

// TestUnsettledName checks that Inspect and List show neither the expired lease nor the expired
// place of a name, and change nothing.
func TestUnsettledName(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	placed(t, e, inQueue(drivertest.Request("t", time.Minute), time.Hour), 1)
	placed(t, e, inQueue(drivertest.Request("t", time.Minute), time.Minute), 2)
	h.pass(time.Minute, 0)
	n := commits(t, e, func() {
		lock, err := e.Inspect(t.Context(), "t")
		if err != nil || len(lock.Holders) != 0 || lock.QueueLength != 1 || len(lock.Queue) != 1 {
			t.Errorf("inspect: %+v, %v; want one place", lock, err)
		}
		for lock, err := range e.List(t.Context(), "") {
			if err != nil || lock.Name != "t" || len(lock.Holders) != 0 || lock.QueueLength != 1 || lock.LastToken == 0 {
				t.Errorf("list: %+v, %v; want one place", lock, err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%d commits, want 0", n)
	}
}
