package sqlitelock

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

const (
	leases     = `SELECT count(*) FROM lease`
	tokens     = `SELECT count(*) FROM token`
	tombstones = `SELECT count(*) FROM cancelled`
)

// litter leaves n leases, tokens and tombstones that end in an hour at most.
func litter(t testing.TB, e *Engine, n int) {
	t.Helper()
	for i := range n {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("litter", i), time.Hour))
		_ = e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: driver.NewLeaseID(), Cancel: true})
	}
}

// TestSweep checks INVARIANT I11: what is over is forgotten by a bounded
// number of rows at a time, and what is not over is not.
func TestSweep(t *testing.T) {
	const (
		many   = 300
		atOnce = 64 // rows of a kind: a millisecond or so
	)
	h := newHost("boot")
	e := openOn(t, h)
	conn := plain(t, e.path)
	litter(t, e, many)
	keep := drivertest.Request("kept", 60*24*time.Hour)
	last := drivertest.Granted(t, e, keep)
	count := func(query string) int64 { return number(t, conn, query) }
	if count(leases) != many+1 || count(tokens) != many+1 || count(tombstones) != many {
		t.Fatalf("%d leases, %d tokens, %d tombstones before their end", count(leases), count(tokens), count(tombstones))
	}
	// The tombstones and leases end; the tokens are remembered.
	h.pass(2*time.Hour, 2*time.Hour)
	before := count(leases)
	for range 10 * sweepEvery {
		drivertest.Cycle(t, e, "work")
		if n := before - count(leases); n > atOnce {
			t.Fatalf("one grant swept %d leases, want %d at most", n, atOnce)
		}
		before = count(leases)
	}
	if count(leases) != 1 || count(tombstones) != 0 || count(tokens) != many+2 {
		t.Errorf("%d leases, %d tombstones and %d tokens after the sweep, want 1, 0 and %d",
			count(leases), count(tombstones), count(tokens), many+2)
	}
	// The tokens go TokenMemory after their instant, except of a live lease.
	h.pass(0, driver.TokenMemory-2*time.Hour-time.Minute)
	for range 10 * sweepEvery {
		drivertest.Cycle(t, e, "work")
	}
	if n := count(tokens); n != many+2 {
		t.Errorf("%d tokens before TokenMemory, want %d", n, many+2)
	}
	h.pass(0, 2*time.Minute)
	for range 10 * sweepEvery {
		drivertest.Cycle(t, e, "work")
	}
	if n := count(tokens); n != 2 {
		t.Errorf("%d tokens after TokenMemory, want 2", n)
	}
	if lock, err := e.Inspect(t.Context(), "kept"); err != nil || lock.LastToken != last || len(lock.Holders) != 1 {
		t.Errorf("the live lease: %+v, %v", lock, err)
	}
	drivertest.Release(t, e, keep)
}

// TestSweepAfterReboot: rows of another boot go as well.
func TestSweepAfterReboot(t *testing.T) {
	e := openOn(t, newHost("m"))
	litter(t, e, 100)
	for _, boot := range []string{"a", "z"} { // before and after it in the index
		other := newHost(boot).open(t, e.path)
		for range 2 * sweepEvery {
			drivertest.Cycle(t, other, "work")
		}
		litter(t, e, 100)
	}
	other := newHost("z").open(t, e.path)
	for range 10 * sweepEvery {
		drivertest.Cycle(t, other, "work")
	}
	conn := plain(t, e.path)
	if l, c := number(t, conn, leases), number(t, conn, tombstones); l != 0 || c != 0 {
		t.Errorf("%d leases and %d tombstones of another boot are left", l, c)
	}
}

// TestSweepUsesIndexes, so that a sweep of a large file takes no longer.
func TestSweepUsesIndexes(t *testing.T) {
	conn := plain(t, openNew(t).path)
	for _, query := range []string{sweepLeasesSQL, sweepCancelledSQL, sweepTokensSQL, pageSQL} {
		rows, err := conn.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, "x", 1, 1, "x")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			if len(detail) >= 4 && detail[:4] == "SCAN" {
				t.Errorf("%s\n%s", query, detail)
			}
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}
