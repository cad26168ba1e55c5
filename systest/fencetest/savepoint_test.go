package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// testSavepoints checks that no transaction passes Check after a rollback to a savepoint undid its
// mark. A step is SQL, or "advance" or "check" with the wanted error.
func testSavepoints(t *testing.T, s *store) {
	type step struct {
		what string
		want error
	}
	for i, c := range []struct {
		name  string
		mark  uint64 // the mark that this holder left in an earlier transaction
		steps []step
	}{
		{"undone", 0, []step{{"SAVEPOINT a", nil}, {"advance", s.nested()}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", sqlfence.ErrUndone}}},
		{"undone after an older mark", 4, []step{{"SAVEPOINT a", nil}, {"advance", s.nested()}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", sqlfence.ErrUndone}}},
		{"undone after the own mark", 5, []step{{"SAVEPOINT a", nil}, {"advance", s.nested()}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", nil}}},
		{"undone after a later mark", 6, []step{{"SAVEPOINT a", nil}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", fence.ErrStale}}},
		{"no advance", 0, []step{{"check", sqlfence.ErrUndone}}},
		{"undone in the inner of two", 0, []step{{"SAVEPOINT a", nil}, {"SAVEPOINT b", nil}, {"advance", s.nested()}, {"ROLLBACK TO SAVEPOINT b", nil}, {"RELEASE SAVEPOINT a", nil}, {"check", sqlfence.ErrUndone}}},
		{"undone by the outer of two", 0, []step{{"SAVEPOINT a", nil}, {"SAVEPOINT b", nil}, {"advance", s.nested()}, {"RELEASE SAVEPOINT b", nil}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", sqlfence.ErrUndone}}},
		{"work undone", 0, []step{{"advance", nil}, {"SAVEPOINT a", nil}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", nil}}},
		{"check undone", 0, []step{{"advance", nil}, {"SAVEPOINT a", nil}, {"check", nil}, {"ROLLBACK TO SAVEPOINT a", nil}, {"check", nil}}},
		{"released", 0, []step{{"SAVEPOINT a", nil}, {"advance", s.nested()}, {"RELEASE SAVEPOINT a", nil}, {"check", nil}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resource, claim := fmt.Sprintf("savepoint/%d", i), fence.NewClaim(5, lockinfo.NewLeaseID())
			if c.mark > 0 {
				before := fence.NewClaim(c.mark, claim.ID())
				if err := s.advance(t.Context(), s.db, resource, before); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := s.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			var last error
			for _, p := range c.steps {
				if last = s.step(t.Context(), tx, p.what, resource, claim); !errors.Is(last, p.want) || last != nil && p.want == nil {
					t.Fatalf("%s: %v, want %v", p.what, last, p.want)
				}
			}
			if last == nil {
				s.wantLocked(t, tx, resource)
			}
		})
	}
	if err := sqlfence.Dialect(0).Check(t.Context(), s.db, "bad", fence.NewClaim(1, "")); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("unknown dialect: %v, want ErrInvalid", err)
	}
	if err := s.dialect.Check(t.Context(), s.db, "bad", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("no claim: %v, want ErrInvalid", err)
	}
	s.testStaleBetween(t)
}

// nested returns the wanted error of Advance inside a savepoint: only PostgreSQL lets it detect
// that.
func (s *store) nested() error {
	if s.dialect == sqlfence.PostgreSQL {
		return sqlfence.ErrNested
	}
	return nil
}

func (s *store) step(ctx context.Context, tx *sql.Tx, what, resource string, c fence.Claim) (err error) {
	switch what {
	case "advance":
		return s.dialect.Advance(ctx, tx, resource, c)
	case "check":
		return s.dialect.Check(ctx, tx, resource, c)
	}
	_, err = tx.ExecContext(ctx, what)
	return err
}

// wantLocked checks that a rival can advance only after tx has ended.
func (s *store) wantLocked(t *testing.T, tx *sql.Tx, resource string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	next := fence.NewClaim(6, lockinfo.NewLeaseID())
	if err := s.advance(ctx, s.db, resource, next); err == nil {
		t.Fatal("a rival has advanced beside a transaction that has passed Check")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.advance(t.Context(), s.db, resource, next); err != nil {
		t.Errorf("a rival after the commit: %v", err)
	}
}

// testStaleBetween checks the danger itself: after a rollback to a savepoint undid a mark, an older
// holder is accepted. The transaction without a mark must then fail Check.
func (s *store) testStaleBetween(t *testing.T) {
	if s.dialect == sqlfence.SQLite {
		return // a transaction that has written excludes all other writers
	}
	const resource = "savepoint/stale"
	young, old := fence.NewClaim(5, lockinfo.NewLeaseID()), fence.NewClaim(4, lockinfo.NewLeaseID())
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, what := range []string{"SAVEPOINT a", "advance", "ROLLBACK TO SAVEPOINT a"} {
		if err := s.step(t.Context(), tx, what, resource, young); err != nil && !errors.Is(err, s.nested()) {
			t.Fatal(what, err)
		}
	}
	if err := s.advance(t.Context(), s.db, resource, old); err != nil {
		t.Fatalf("the older holder: %v: the fault that this test is about is not there", err)
	}
	if err := s.dialect.Check(t.Context(), tx, resource, young); !errors.Is(err, sqlfence.ErrUndone) {
		t.Errorf("after an older holder has come between: %v, want ErrUndone", err)
	}
}
