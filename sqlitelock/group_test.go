package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A jam is an engine whose requests wait because another connection writes.
type jam struct {
	*Engine
	t     testing.TB
	other *conn
	wg    sync.WaitGroup
}

func newJam(t testing.TB, e *Engine) *jam {
	t.Helper()
	j := &jam{Engine: e, t: t, other: plain(t, e.path)}
	must(t, j.other, `BEGIN IMMEDIATE`)
	return j
}

func (j *jam) length() int {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return len(j.queue.waiting)
}

// join starts f, and returns once the request of f is in the queue.
func (j *jam) join(f func()) {
	j.t.Helper()
	n := j.length() + 1
	j.wg.Go(f)
	drivertest.Eventually(j.t, "the request is in line", func() bool { return j.length() == n && len(j.turn) == 1 })
}

// end ends the other connection's transaction, and waits for the requests.
func (j *jam) end() {
	j.t.Helper()
	must(j.t, j.other, `ROLLBACK`)
	j.wg.Wait()
}

// acquires queues requests for n free names, and returns the requests.
func (j *jam) acquires(n int) (reqs []driver.AcquireRequest) {
	j.t.Helper()
	for i := range n {
		req := drivertest.Request(fmt.Sprint("free", i), time.Minute)
		reqs = append(reqs, req)
		j.join(func() { drivertest.Granted(j.t, j.Engine, req) })
	}
	return reqs
}

// TestGroupIsOneTransaction checks that queued requests are carried out in one transaction. 16 of
// them cost two statements for the transaction and 3 or 1 for each request, and hardly more pages
// of the log than one request.
func TestGroupIsOneTransaction(t *testing.T) {
	const many, sweep = 16, 8
	e := openOn(t, newHost("boot"))
	c := count(e)
	drivertest.Cycle(t, e, "t")
	measure := func(what string, statements, pages int, join func(j *jam)) {
		t.Helper()
		j := newJam(t, e)
		join(j)
		c.passed()
		logged := frames(t, e)
		j.end()
		if n, p := c.passed(), int(frames(t, e)-logged); n != statements || p > pages {
			t.Errorf("%s: %d statements and %d pages, want %d, and %d at most", what, n, p, statements, pages)
		}
	}
	var reqs []driver.AcquireRequest
	measure("acquire", 2+3*many+sweep, 5, func(j *jam) { reqs = j.acquires(many) }) // new names
	measure("release", 2+many, 2, func(j *jam) {
		for _, req := range reqs {
			j.join(func() { drivertest.Release(t, e, req) })
		}
	})
}

// TestGroupIsBounded checks that a transaction is at most batchNames names, or one request, however
// many requests wait.
func TestGroupIsBounded(t *testing.T) {
	const many = 3*batchNames/2 + 1
	e := openNew(t)
	j := newJam(t, e)
	j.acquires(many)
	if n := commits(t, e, j.end); n != 2 {
		t.Errorf("%d requests were %d transactions, want 2", many, n)
	}
	j = newJam(t, e)
	batch := func() {
		var reqs []driver.AcquireRequest
		for range driver.MaxBatch {
			reqs = append(reqs, drivertest.Request(string(lockinfo.NewLeaseID()), time.Minute))
		}
		if reply, err := e.AcquireAll(t.Context(), reqs); err != nil || reply.Outcome != driver.Granted {
			t.Errorf("%+v, %v", reply, err)
		}
	}
	for range 3 {
		j.join(batch)
	}
	if n := commits(t, e, j.end); n != 3 {
		t.Errorf("3 batches were %d transactions, want 3", n)
	}
}

// TestFailureInAGroup checks that a request that fails in a batch gets its error, and that its
// writes are undone. The other requests are carried out.
func TestFailureInAGroup(t *testing.T) {
	failure := errors.New("my own")
	e := openNew(t)
	j := newJam(t, e)
	lost := make([]error, 2)
	extend := func(i int) func() {
		return func() {
			lost[i] = e.Extend(t.Context(), []driver.ExtendRequest{{Name: "free0", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}})[0]
		}
	}
	reqs := j.acquires(2)
	j.join(extend(0))
	j.join(func() {
		err := e.transact(t.Context(), func(tx *tx) error {
			if err := tx.sql.run(cancelSQL, lockinfo.NewLeaseID(), tx.bootID, tx.now.after(time.Hour)); err != nil {
				return err
			}
			tx.tell(lockinfo.NewLeaseID(), driver.Notice{})
			return failure
		})
		wantIs(t, "the request that fails", err, failure)
	})
	j.join(extend(1))
	more := drivertest.Request("more", time.Minute)
	j.join(func() { drivertest.Granted(t, e, more) })
	j.end()
	for i, err := range lost {
		wantIs(t, fmt.Sprint("extend ", i), err, driver.ErrLost)
	}
	for _, req := range append(reqs, more) {
		drivertest.Held(t, e, drivertest.Request(req.Name, time.Minute))
		drivertest.Release(t, e, req)
	}
	if n := number(t, plain(t, e.path), tombstones); n != 0 {
		t.Errorf("%d rows of the request that failed are left", n)
	}
}

// TestBrokenStatementInAGroup checks that a database error of one request in a batch does not
// affect the others. Here the request does not fit into the database.
func TestBrokenStatementInAGroup(t *testing.T) {
	e := openNew(t)
	must(t, e.conn, `PRAGMA max_page_count = 10`)
	j := newJam(t, e)
	j.acquires(3)
	large := drivertest.Request("large", time.Minute)
	large.Holder.Reason = strings.Repeat("x", 64<<10)
	j.join(func() {
		_, err := e.Acquire(t.Context(), large)
		wantIs(t, "acquire", err, driver.ErrUnavailable)
	})
	next := drivertest.Request("next", time.Minute)
	j.join(func() { drivertest.Granted(t, e, next) })
	j.end()
	drivertest.Granted(t, e, drivertest.Request("large", time.Minute))
}

// TestEndedInLine checks that a request whose context ends in the queue returns at once and is not
// carried out, whether or not its caller has the turn. The other requests are carried out.
func TestEndedInLine(t *testing.T) {
	for _, ended := range []int{0, 1, 2} {
		e := openNew(t)
		j := newJam(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error)
		var names []string
		for i := range 3 {
			req := drivertest.Request(fmt.Sprint(i), time.Minute)
			names = append(names, req.Name)
			j.join(func() {
				if i != ended {
					drivertest.Granted(t, e, req)
					return
				}
				_, err := e.Acquire(ctx, req)
				answered <- err
			})
		}
		cancel()
		wantIs(t, "acquire", <-answered, driver.ErrUnavailable) // while the database is busy
		j.end()
		for i, name := range names {
			lock, err := e.Inspect(t.Context(), name)
			want := 1
			if i == ended {
				want = 0
			}
			if err != nil || len(lock.Holders) != want {
				t.Errorf("request %d of 3, and %d ended: %d holders, %v, want %d", i, ended, len(lock.Holders), err, want)
			}
		}
	}
}

// TestEndedWhenItsTurnComes checks that a request whose context has ended is not carried out, even
// if the request is still in the queue.
func TestEndedWhenItsTurnComes(t *testing.T) {
	e := openNew(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	r := &request{ctx: ctx, names: 1, done: make(chan struct{}), do: func(*tx) error { ran = true; return nil }}
	e.queue.add(r)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	<-r.done
	wantIs(t, "the request", r.err, context.Canceled)
	wantIs(t, "the request", r.err, driver.ErrUnavailable)
	if ran {
		t.Error("a request whose context had ended was carried out")
	}
}

// TestLineIsServedInOrder checks that requests get places in the order of their arrival, even if
// one of them fails and each is retried alone. INVARIANT I7.
func TestLineIsServedInOrder(t *testing.T) {
	for _, fails := range []bool{false, true} {
		e := openNew(t)
		drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
		j := newJam(t, e)
		const many = 10
		places := make([]int, many)
		for i := range many {
			if fails && i == many/2 {
				j.join(func() { _ = e.transact(t.Context(), func(*tx) error { return errors.New("fails") }) })
			}
			j.join(func() {
				reply, err := e.Acquire(t.Context(), inQueue(drivertest.Request("t", time.Hour), time.Hour))
				if err != nil || reply.Outcome != driver.Held {
					t.Errorf("%+v, %v", reply, err)
				}
				places[i] = reply.Place
			})
		}
		j.end()
		if !slices.IsSorted(places) || places[many-1] != many {
			t.Errorf("with a failure: %t: the places are %d", fails, places)
		}
	}
}

// TestFailedGroupKeepsItsOrder checks that the requests of a failed batch go before later requests.
func TestFailedGroupKeepsItsOrder(t *testing.T) {
	l := &queue{}
	var all []*request
	for range 4 {
		all = append(all, &request{ctx: t.Context(), names: 1})
		l.add(all[len(all)-1])
	}
	group := l.take(false)
	late := &request{ctx: t.Context(), names: 1}
	l.add(late)
	l.putBack(group)
	if got := l.take(false); !slices.Equal(got, append(all, late)) {
		t.Errorf("the queue is %v, want %v", got, append(all, late))
	}
}

// TestGroupSharesItsSteps checks that a batch purges no more rows in a transaction than one request
// may, and that the next transaction continues where the last one stopped.
func TestGroupSharesItsSteps(t *testing.T) {
	const dead, asked = 100, 5
	e := openNew(t)
	for i := range asked {
		crowd(t, e, "lease", dead, fmt.Sprint("free", i), lockinfo.Shared, 1, false)
	}
	j := newJam(t, e)
	j.acquires(asked)
	var left []int64 // before each commit, and at the end
	conn := plain(t, e.path)
	look := func() { left = append(left, number(t, conn, `SELECT count(*) FROM lease WHERE mode = 1`)) }
	commits(t, e, j.end, look)
	look()
	for i := range left[1:] {
		if n := left[i] - left[i+1]; n > maxSteps+sweepRows {
			t.Errorf("a transaction purged %d leases, want %d at most", n, maxSteps+sweepRows)
		}
	}
	if left[0] != dead*asked || left[len(left)-1] != 0 {
		t.Errorf("%d leases that are over were left before each commit, want %d at first and none in the end", left, dead*asked)
	}
}

// TestFailedCommitOfAGroup checks that a failed commit leaves the outcome of all requests of the
// batch unknown, and the engine usable.
func TestFailedCommitOfAGroup(t *testing.T) {
	e := openNew(t)
	j := newJam(t, e)
	onCommit(t, e, func() int32 { return 1 })
	for i := range 3 {
		j.join(func() {
			_, err := e.Acquire(t.Context(), drivertest.Request(fmt.Sprint(i), time.Minute))
			if err == nil || driver.Definite(err) {
				t.Errorf("a failed commit: error %v, want one that says nothing", err)
			}
		})
	}
	j.end()
	onCommit(t, e, nil)
	for i := range 3 {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint(i), time.Minute))
	}
}

// TestDurableInAGroup checks that a batch with a durable request is flushed to the disk, and a
// batch without one is not.
func TestDurableInAGroup(t *testing.T) {
	const normal, full = 1, 2
	e := openNew(t)
	j := newJam(t, e)
	level := func(levels *[]int64) func(*tx) error {
		return func(tx *tx) error {
			*levels = append(*levels, number(t, tx.sql, `PRAGMA synchronous`))
			return nil
		}
	}
	var durable, others []int64
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	j.join(func() { must(e.transact(t.Context(), level(&others))) })
	j.join(func() { must(e.transactDurably(t.Context(), level(&durable))) })
	j.join(func() { must(e.transact(t.Context(), level(&others))) })
	j.end()
	if !slices.Equal(durable, []int64{full}) || len(others) != 2 {
		t.Errorf("the durable request ran with the level %d, want %d; others with %d", durable, full, others)
	}
	others = nil
	must(e.transact(t.Context(), level(&others)))
	if !slices.Equal(others, []int64{normal}) {
		t.Errorf("a request after it ran with the level %d, want %d", others, normal)
	}
}
