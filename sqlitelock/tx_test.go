package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// briefly returns a context that ends after a time that is long for a transaction.
func briefly(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestClockIsReadUnderTheWriteLock checks that a request does not read the clock before it has the
// write lock.
func TestClockIsReadUnderTheWriteLock(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	other := plain(t, e.path)
	must(t, other, `BEGIN IMMEDIATE`)
	h.mu.Lock()
	before := h.reads
	h.mu.Unlock()
	err := e.Extend(briefly(t), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0]
	wantIs(t, "extend", err, driver.ErrUnavailable)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reads != before {
		t.Error("the clock was read before the write lock was had")
	}
}

// TestBusyDatabase checks that a request for a held name is refused at once while another process
// keeps the write lock. Requests that would write fail with ErrUnavailable when their context ends.
func TestBusyDatabase(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	other := plain(t, e.path)
	must(t, other, `BEGIN IMMEDIATE`)
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	free := drivertest.Request("free", time.Minute)
	_, err := e.Acquire(briefly(t), free)
	wantIs(t, "acquire", err, driver.ErrUnavailable)
	wantIs(t, "acquire", err, context.DeadlineExceeded)
	err = e.Release(briefly(t), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID})
	wantIs(t, "release", err, driver.ErrUnavailable)
	if lock, err := e.Inspect(t.Context(), "t"); err != nil || len(lock.Holders) != 1 {
		t.Errorf("inspect: %+v, %v", lock, err)
	}

	// Only one request of an engine uses the database at a time.
	first := make(chan error)
	go func() {
		_, err := e.Acquire(t.Context(), free)
		first <- err
	}()
	drivertest.Eventually(t, "the first request has its turn", func() bool { return len(e.turn) == 1 })
	err = e.Release(briefly(t), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID})
	wantIs(t, "release behind another request", err, context.DeadlineExceeded)
	must(t, other, `ROLLBACK`)
	if err := <-first; err != nil {
		t.Error(err)
	}
	drivertest.Held(t, e, drivertest.Request("free", time.Minute))
	drivertest.Release(t, e, req)
}

// TestCancelOvertakes checks that a request that is cancelled while it waits for the write lock is
// not granted. INVARIANT I5.
func TestCancelOvertakes(t *testing.T) {
	e := openNew(t)
	other := plain(t, e.path)
	must(t, other, `BEGIN IMMEDIATE`)
	req := drivertest.Request("t", time.Minute)
	replies := make(chan driver.AcquireReply)
	go func() {
		reply, err := e.Acquire(t.Context(), req)
		if err != nil {
			t.Error(err)
		}
		replies <- reply
	}()
	drivertest.Eventually(t, "the request has its turn", func() bool { return len(e.turn) == 1 })
	must(t, other, fmt.Sprintf(`INSERT INTO cancelled VALUES ('%s', '%s', %d); COMMIT`,
		req.LeaseID, e.clock.bootID, math.MaxInt64))
	if reply := <-replies; reply.Outcome != driver.Cancelled {
		t.Errorf("acquire: %+v, want it cancelled", reply)
	}
}

// TestCloseWhileBusy checks that Close ends requests that wait for another process.
func TestCloseWhileBusy(t *testing.T) {
	e := openNew(t)
	drivertest.Granted(t, e, drivertest.Request("held", time.Minute))
	queued(t, e, "held") // the listener runs
	must(t, plain(t, e.path), `BEGIN IMMEDIATE`)
	failed := make(chan error)
	for range 2 {
		go func() {
			_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
			failed <- err
		}()
	}
	drivertest.Eventually(t, "a request waits", func() bool { return len(e.turn) == 1 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		wantIs(t, "acquire", <-failed, driver.ErrClosed)
	}
}

// TestFailedCommit checks that a failed commit leaves the outcome unknown, and the engine usable.
func TestFailedCommit(t *testing.T) {
	e := openNew(t)
	onCommit(t, e, func() int32 { return 1 })
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	if err == nil {
		t.Fatal("a failed commit granted the lock")
	}
	for _, definite := range []error{
		driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrPermission,
		driver.ErrKindMismatch, driver.ErrClosed, driver.ErrLost,
	} {
		if errors.Is(err, definite) {
			t.Errorf("%v says that the outcome is known", err)
		}
	}
	onCommit(t, e, nil)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
}

// TestFullDatabase checks that a request that does not fit into the database fails with
// ErrUnavailable.
func TestFullDatabase(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	req.Holder.Reason = string(make([]byte, 64<<10))
	must(t, e.conn, `PRAGMA max_page_count = 10`)
	_, err := e.Acquire(t.Context(), req)
	wantIs(t, "acquire", err, driver.ErrUnavailable)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
}

// TestRefusedTokens checks that an acquire changes nothing if its MinToken is refused or the tokens
// of the name are used up.
func TestRefusedTokens(t *testing.T) {
	e := openNew(t)
	req := drivertest.Request("t", time.Minute)
	for _, lift := range []uint64{^uint64(0), driver.MaxToken, uint64(time.Now().Add(2 * driver.MaxTokenLead).UnixMicro())} {
		req.MinToken = lift
		_, err := e.Acquire(t.Context(), req)
		wantIs(t, "acquire", err, driver.ErrInvalid)
	}
	if n := number(t, plain(t, e.path), `SELECT (SELECT count(*) FROM lease) + (SELECT count(*) FROM token)`); n != 0 {
		t.Errorf("%d rows after refusals, want 0", n)
	}
	must(t, plain(t, e.path), `INSERT INTO token VALUES ('t', 9007199254740990, 0)`)
	req.MinToken = 0
	_, err := e.Acquire(t.Context(), req)
	wantIs(t, "acquire after the last token", err, driver.ErrUnavailable)
	if lock, err := e.Inspect(t.Context(), "t"); err != nil || len(lock.Holders) != 0 || lock.LastToken != driver.MaxToken {
		t.Errorf("inspect: %+v, %v", lock, err)
	}
}
