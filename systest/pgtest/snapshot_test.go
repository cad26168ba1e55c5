package pgtest

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestOldSnapshot checks that the doctor warns of an old snapshot, which makes the server keep
// every version of a row. A second after the snapshot's end, a pair takes as long as before.
func TestOldSnapshot(t *testing.T) {
	t.Parallel()
	server := testsvc.Postgres(t)
	engine := open(t, server)
	pairs := func(n int) time.Duration {
		took := make([]time.Duration, n)
		for i := range took {
			began := time.Now()
			drivertest.Cycle(t, engine, "busy")
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		return took[n/2]
	}
	before := pairs(100)
	old, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close(t.Context())
	tx, err := old.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT pg_current_xact_id()") // takes the snapshot
	}
	if err != nil {
		t.Fatal(err)
	}
	uses := soak.Count(600, 10_000)
	pairs(uses)
	during := pairs(100)
	if !snapshotWarned(t, engine) {
		t.Error("the doctor does not warn of the old snapshot")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the time within which the cost must recover
	after := pairs(100)
	report.Row(t, "an old snapshot while one name is used", "the doctor warns; within 1 s of its end a pair takes as long as before",
		"%d uses: a pair took %s before, %s at the end of the snapshot, %s after it", uses, before, during, after)
	if after > max(2*before, before+(during-before)/2) {
		t.Errorf("a pair takes %s after the snapshot has ended, %s before", after, before)
	}
}

// snapshotWarned reports whether the doctor has a finding about old snapshots.
func snapshotWarned(t *testing.T, engine driver.Diagnoser) bool {
	t.Helper()
	d, err := engine.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(d.Findings, func(f driver.Finding) bool { return f.Key == "snapshots" && f.Level == driver.Warn })
}
