package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// pages returns how many database pages the writing connection of e has read so far. It measures
// the work of a search without a clock.
func pages(t testing.TB, e *Engine) (n int) {
	t.Helper()
	for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
		count, _, err := e.conn.Conn.(sqlite.DBStatus).Status(op, false)
		if err != nil {
			t.Fatal(err)
		}
		n += count
	}
	return n
}

// transactions returns the largest number of pages that a transaction of e reads while f runs, and
// how many transactions write.
func transactions(t testing.TB, e *Engine, f func()) (most, n int) {
	t.Helper()
	last := pages(t, e)
	n = commits(t, e, f, func() {
		now := pages(t, e)
		most, last = max(most, now-last), now
	})
	return most, n
}

// A counter is a connection that counts the statements that it has run.
type counter struct {
	sqldriver.Conn
	n atomic.Int64
}

// count makes e count the statements of the connection that writes.
func count(e *Engine) *counter {
	c := &counter{Conn: e.conn.Conn}
	e.conn.forget()
	e.conn.Conn = c
	return c
}

// passed returns how many statements have run since the last call.
func (c *counter) passed() int { return int(c.n.Swap(0)) }

func (c *counter) Prepare(query string) (sqldriver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return counted{stmt, c}, err
}

type counted struct {
	sqldriver.Stmt
	by *counter
}

func (s counted) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	r, err := s.Stmt.(sqldriver.StmtExecContext).ExecContext(ctx, args)
	if err == nil { // a busy statement does not count
		s.by.n.Add(1)
	}
	return r, err
}

func (s counted) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	s.by.n.Add(1)
	return s.Stmt.(sqldriver.StmtQueryContext).QueryContext(ctx, args)
}

// frames returns how many pages the log of e has.
func frames(t testing.TB, e *Engine) int64 {
	t.Helper()
	const header, frameHeader = 32, 24
	info, err := os.Stat(e.path + onefile.LogSuffix)
	if err != nil {
		t.Fatal(err)
	}
	return (info.Size() - header) / (frameHeader + number(t, plain(t, e.path), `PRAGMA page_size`))
}

// TestPairCost checks that an uncontended lock costs two transactions: 5 statements and 2 pages of
// the log to acquire it, and 3 statements and 1 page to release it.
func TestPairCost(t *testing.T) {
	e := openOn(t, newHost("boot"))
	c := count(e)
	drivertest.Cycle(t, e, "t") // includes the sweep, and the first token of the name
	req := drivertest.Request("t", time.Minute)
	for _, step := range []struct {
		what              string
		do                func()
		statements, pages int
	}{
		{"acquire", func() { drivertest.Granted(t, e, req) }, 5, 2},
		{"release", func() { drivertest.Release(t, e, req) }, 3, 1},
	} {
		c.passed()
		logged := frames(t, e)
		step.do()
		if n, pages := c.passed(), int(frames(t, e)-logged); n != step.statements || pages != step.pages {
			t.Errorf("%s: %d statements and %d pages, want %d and %d", step.what, n, pages, step.statements, step.pages)
		}
	}
}

// many is the number of waiters, holders or expired places of a name in a test.
const many = 1000

// rowID returns the lease ID of row i that crowd inserts.
func rowID(i int) lockinfo.LeaseID { return lockinfo.LeaseID(fmt.Sprintf("%032x", i)) }

// crowd inserts n rows of a name into a table, with a mode, an expiry after the boot, and the lease
// IDs from rowID(1) on.
func crowd(t testing.TB, e *Engine, table string, n int, name string, mode lockinfo.Mode, expiry time.Duration, once bool) {
	t.Helper()
	f := modes.Of(mode)
	values := fmt.Sprintf(`'%s', printf('%%032x', i), i, %d, %d, %d, '{}', '%s', %d, 0, 0`, name, int(f.Kind), f.Limit, f.Permits, e.clock.bootID, expiry)
	columns := `name, lease_id, token, mode, permit_limit, permits, holder, boot_id, expiry, released, granted`
	if table == "place" {
		values += fmt.Sprintf(`, %t, 0`, once)
		columns = `name, lease_id, seq, mode, permit_limit, permits, holder, boot_id, expiry, looks, min_token, once, asked`
	}
	must(t, plain(t, e.path), fmt.Sprintf(`INSERT INTO %s (%s)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM n`, table, columns, n, values))
}

// TestQueueCostDoesNotGrow checks that a request for a place, a batch of refreshes, a hand-over and
// a refusal read hardly more pages under the write lock in a queue of 3,000 than in one of 200.
func TestQueueCostDoesNotGrow(t *testing.T) {
	cost := func(waiters int) (all []int) {
		e := openNew(t)
		holder := drivertest.Request("t", time.Hour)
		drivertest.Granted(t, e, holder)
		crowd(t, e, "place", waiters, "t", lockinfo.Exclusive, 1000*time.Hour, false)
		measure := func(f func()) {
			before := pages(t, e)
			f()
			all = append(all, pages(t, e)-before)
		}
		least := 1 << 30 // now and then a row splits a page, which is not a search
		for i := range 5 {
			before := pages(t, e)
			placed(t, e, inQueue(drivertest.Request("t", time.Hour), time.Hour), waiters+1+i)
			least = min(least, pages(t, e)-before)
		}
		all = append(all, least)
		reqs := make([]driver.RefreshRequest, driver.MaxBatch)
		for i := range reqs {
			reqs[i] = driver.RefreshRequest{Name: "t", LeaseID: rowID(waiters - i), WaiterTTL: time.Hour}
		}
		measure(func() {
			for i, r := range e.Refresh(t.Context(), reqs) {
				if r.Err != nil || r.Outcome != driver.Held || r.Place != waiters-i {
					t.Fatalf("refresh of place %d: %+v", waiters-i, r)
				}
			}
		})
		measure(func() { drivertest.Release(t, e, holder) })
		measure(func() { drivertest.Held(t, e, drivertest.Request("t", time.Hour)) })
		return all
	}
	const length = 3000
	short, long := cost(200), cost(length)
	for i, what := range []string{"a request for a place", "a batch of refreshes", "a hand-over", "a refusal"} {
		t.Logf("%s: %d pages in a queue of 200, %d in one of %d", what, short[i], long[i], length)
		// A tree of 3,000 rows may be a level higher than one of 200.
		if long[i] > short[i]*3/2+10 {
			t.Errorf("%s looks at %d pages in a queue of 200, and at %d in one of %d", what, short[i], long[i], length)
		}
	}
}

// TestTransactionsAreBounded checks that a transaction does a bounded amount of work, however many
// waiters, holders and expired rows a name has, and that a call returns only after all
// transactions.
func TestTransactionsAreBounded(t *testing.T) {
	const (
		far       = 1000 * time.Hour
		steps     = 256        // in one transaction
		bound     = 50 * steps // pages: a step is a few statements
		exclusive = lockinfo.Exclusive
	)
	granted := func(t *testing.T, e *Engine) { drivertest.Granted(t, e, drivertest.Request("t", time.Hour)) }
	for _, c := range []struct {
		what    string
		prepare func(t *testing.T, e *Engine)
		do      func(t *testing.T, e *Engine)
		commits int // at least
	}{
		{"dead places", func(t *testing.T, e *Engine) { crowd(t, e, "place", many, "t", exclusive, 1, false) }, granted, many / steps},
		{"dead shared leases", func(t *testing.T, e *Engine) { crowd(t, e, "lease", many, "t", lockinfo.Shared, 1, false) }, granted, many / steps},
		{"dead permits", func(t *testing.T, e *Engine) {
			crowd(t, e, "lease", many, "t", lockinfo.Permits(1, lockinfo.MaxLimit), 1, false)
		}, granted, many / steps},
		{"live shared leases", func(t *testing.T, e *Engine) { crowd(t, e, "lease", many, "t", lockinfo.Shared, far, false) }, func(t *testing.T, e *Engine) {
			placed(t, e, inQueue(drivertest.Request("t", time.Hour), time.Hour), 1)
		}, 1},
		{"live permits", func(t *testing.T, e *Engine) {
			crowd(t, e, "lease", many, "t", lockinfo.Permits(1, lockinfo.MaxLimit), far, false)
		}, func(t *testing.T, e *Engine) {
			rest := of(drivertest.Request("t", time.Hour), lockinfo.Permits(lockinfo.MaxLimit-many, lockinfo.MaxLimit))
			drivertest.Granted(t, e, rest)
			one := of(drivertest.Request("t", time.Hour), lockinfo.Permits(1, lockinfo.MaxLimit))
			placed(t, e, inQueue(one, time.Hour), 1)
			drivertest.Release(t, e, rest)
			drivertest.Granted(t, e, one)
		}, 4},
		{"waiters behind a release", heldBefore(lockinfo.Shared, far, false), func(t *testing.T, e *Engine) {
			drivertest.Release(t, e, driver.AcquireRequest{Name: "t", LeaseID: rowID(0)})
			allGranted(t, e)
		}, many / steps},
		{"waiters behind a downgrade", heldBefore(lockinfo.Shared, far, false), func(t *testing.T, e *Engine) {
			if err := e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "t", LeaseID: rowID(0)}); err != nil {
				t.Fatal(err)
			}
			allGranted(t, e)
		}, many / steps},
		{"waiters for what is done", heldBefore(exclusive, far, true), func(t *testing.T, e *Engine) {
			req := driver.CompleteRequest{Name: "t", LeaseID: rowID(0), Record: []byte("42"), Retention: time.Hour}
			if err := e.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if n := number(t, plain(t, e.path), places); n != 0 {
				t.Errorf("%d places are left", n)
			}
		}, many / steps},
		{"a look at a long queue", func(t *testing.T, e *Engine) { crowd(t, e, "place", many, "t", exclusive, far, false) }, func(t *testing.T, e *Engine) {
			lock, err := e.Inspect(t.Context(), "t")
			if err != nil || lock.QueueLength != many || len(lock.Queue) != driver.ShownPlaces || lock.Queue[255].LeaseID != rowID(256) {
				t.Errorf("inspect: a queue of %d, of which %d are shown, %v", lock.QueueLength, len(lock.Queue), err)
			}
		}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := openNew(t)
			c.prepare(t, e)
			most, n := transactions(t, e, func() { c.do(t, e) })
			t.Logf("%d transactions, of %d pages at most", n, most)
			if n < c.commits {
				t.Errorf("%d transactions, want %d at least", n, c.commits)
			}
			if most > bound {
				t.Errorf("a transaction looked at %d pages, want %d at most", most, bound)
			}
		})
	}
}

// heldBefore returns a function that acquires an exclusive lease, and inserts places behind it.
func heldBefore(mode lockinfo.Mode, expiry time.Duration, once bool) func(t *testing.T, e *Engine) {
	return func(t *testing.T, e *Engine) {
		holder := drivertest.Request("t", time.Hour)
		holder.LeaseID = rowID(0)
		drivertest.Granted(t, e, holder)
		crowd(t, e, "place", many, "t", mode, expiry, once)
	}
}

// allGranted checks that the places that crowd has made have become leases, in their order.
func allGranted(t *testing.T, e *Engine) {
	t.Helper()
	conn := plain(t, e.path)
	if n := number(t, conn, places); n != 0 {
		t.Errorf("%d places are left", n)
	}
	if n := number(t, conn, `SELECT count(*) FROM (SELECT lease_id, lag(lease_id) OVER (ORDER BY token) AS before FROM lease)
		WHERE before >= lease_id`); n != 0 {
		t.Errorf("%d leases were granted out of turn", n)
	}
}

// TestNobodyOvertakesUnfinishedWork checks that a new request overtakes no waiter while a release
// hands the lock over to a long queue in several transactions.
func TestNobodyOvertakesUnfinishedWork(t *testing.T) {
	e := openNew(t)
	heldBefore(lockinfo.Shared, 1000*time.Hour, false)(t, e)
	rival := open(t, e.path)
	began, released := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(released)
		n := 0
		commits(t, e, func() { drivertest.Release(t, e, driver.AcquireRequest{Name: "t", LeaseID: rowID(0)}) }, func() {
			if n++; n == 2 { // the first transaction is committed
				close(began)
			}
		})
	})
	<-began
	req := of(drivertest.Request("t", time.Hour), lockinfo.Shared)
	token := drivertest.Granted(t, rival, req)
	select {
	case <-released:
		t.Log("the release was over when the rival was granted the lock: nothing was shown")
	default:
	}
	wg.Wait()
	if n := number(t, plain(t, e.path), fmt.Sprintf(`SELECT count(*) FROM lease WHERE token > %d`, token)); n != 0 {
		t.Errorf("%d of those who waited were overtaken", n)
	}
	allGranted(t, e)
}
