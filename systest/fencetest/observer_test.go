package fencetest

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// TestObserverOfSQL checks that the Observer of a guard in a database gets each decision, with the
// mark.
func TestObserverOfSQL(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := sqlfence.SQLite.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	told := make(chan observe.Event, 8)
	g := sqlfence.NewGuard(sqlfence.SQLite, &sqlfence.Options{Observer: func(e observe.Event) { told <- e }})
	advance := func(token uint64) error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := g.Advance(t.Context(), tx, "seat", fence.NewClaim(token, lockinfo.NewLeaseID())); err != nil {
			return err
		}
		return tx.Commit()
	}
	if err := advance(34); err != nil {
		t.Fatal(err)
	}
	if err := advance(33); !errors.Is(err, fence.ErrStale) {
		t.Fatalf("a stale claim: %v", err)
	}
	for _, want := range []observe.Event{
		{Kind: observe.ClaimAccepted, Token: 34, Current: 34},
		{Kind: observe.ClaimRefused, Token: 33, Current: 34},
	} {
		got := <-told
		if got.Kind != want.Kind || got.Token != want.Token || got.Current != want.Current || got.Name != "seat" || (got.Err == nil) != (want.Kind == observe.ClaimAccepted) {
			t.Errorf("received %s of %q: token %d, mark %d, %v; want %s, %d, %d", got.Kind, got.Name, got.Token, got.Current, got.Err, want.Kind, want.Token, want.Current)
		}
	}
}
