package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

var (
	_ sqlfence.Tx = (*sql.Tx)(nil)
	_ sqlfence.Tx = (*sql.Conn)(nil)
)

// advance runs one transaction that only calls Advance.
func (s *store) advance(ctx context.Context, db *sql.DB, resource string, c fence.Claim) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.dialect.Advance(ctx, tx, resource, c); err != nil {
		return err
	}
	return tx.Commit()
}

func wantStale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) || *stale != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// testRule checks the rule for claims, with every connection option that changes how a driver
// counts rows or sends statements.
func testRule(t *testing.T, s *store) {
	params := []string{""}
	switch s.dialect {
	case sqlfence.MySQL:
		params = []string{"", "?clientFoundRows=true", "?interpolateParams=true", "?clientFoundRows=true&interpolateParams=true&sql_mode=ANSI"}
	case sqlfence.PostgreSQL:
		params = []string{"", " default_query_exec_mode=simple_protocol", " default_query_exec_mode=exec"}
	}
	for i, p := range params {
		t.Run("params"+p, func(t *testing.T) {
			db, resource := s.open(t, p), fmt.Sprintf("rule/%d", i)
			a, b := lockinfo.NewLeaseID(), lockinfo.NewLeaseID()
			for _, c := range []struct {
				token   uint64
				id      holdfast.LeaseID
				current uint64 // of the refusal; 0 for accepted
			}{
				{33, a, 0}, {33, a, 0}, // the same holder writes twice
				{33, b, 33}, {33, "", 33}, // another one has the same token
				{32, a, 33}, {32, b, 33}, {1, a, 33},
				{34, b, 0}, {34, a, 34}, {33, a, 34}, // the last is a stale holder
				{34, b, 0},
				{1795247753125910, "", 0}, {1795247753125910, "", 0}, {1795247753125910, a, 1795247753125910},
				{fence.MaxToken - 1, a, 0}, {fence.MaxToken, b, 0}, {fence.MaxToken, b, 0}, {fence.MaxToken - 1, a, fence.MaxToken},
			} {
				token, id := s.mark(t, resource)
				err := s.advance(t.Context(), db, resource, fence.NewClaim(c.token, c.id))
				if c.current != 0 {
					wantStale(t, err, fence.StaleError{Resource: resource, Token: c.token, Current: c.current})
				} else if err != nil {
					t.Errorf("%d of %.4q after %d of %.4q: %v, want it accepted", c.token, c.id, token, id, err)
				} else {
					token, id = c.token, string(c.id)
				}
				if gotToken, gotID := s.mark(t, resource); gotToken != token || gotID != id {
					t.Fatalf("after %d of %.4q the mark is %d of %.4q, want %d of %.4q", c.token, c.id, gotToken, gotID, token, id)
				}
			}
		})
	}
}

func testBadClaims(t *testing.T, s *store) {
	id := lockinfo.NewLeaseID()
	for _, c := range []struct {
		resource string
		claim    fence.Claim
	}{
		{"bad", fence.NewClaim(0, id)}, {"bad", fence.NewClaim(fence.MaxToken+1, id)}, {"bad", nil},
		{"bad", fence.NewClaim(1, "worker-1")}, {"bad", fence.NewClaim(1, id[:31])},
		{"", fence.NewClaim(1, id)}, {"bad\x00", fence.NewClaim(1, id)}, {strings.Repeat("b", 513), fence.NewClaim(1, id)},
	} {
		if err := s.advance(t.Context(), s.db, c.resource, c.claim); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%.10q, %v: %v, want ErrInvalid", c.resource, c.claim, err)
		}
	}
	if token, _ := s.mark(t, "bad"); token != 0 {
		t.Errorf("a bad claim left the mark %d", token)
	}
	if err := sqlfence.Dialect(0).Advance(t.Context(), s.db, "bad", fence.NewClaim(1, id)); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("unknown dialect: %v, want ErrInvalid", err)
	}
}

// testNames checks that no collation merges two resources, and no encoding splits one.
func testNames(t *testing.T, s *store) {
	encoding := map[sqlfence.Dialect]string{sqlfence.PostgreSQL: " client_encoding=LATIN1", sqlfence.MySQL: "?charset=latin1"}[s.dialect]
	latin1, claim := s.open(t, encoding), fence.NewClaim(7, lockinfo.NewLeaseID())
	if err := s.advance(t.Context(), s.db, "schlüssel", claim); err != nil {
		t.Error(err)
	}
	wantStale(t, s.advance(t.Context(), latin1, "schlüssel", fence.NewClaim(6, "")), fence.StaleError{Resource: "schlüssel", Token: 6, Current: 7})
	if err := s.dialect.Check(t.Context(), latin1, "schlüssel", claim); err != nil {
		t.Errorf("check by another encoding: %v", err)
	}
	for i, resource := range []string{"name", "NAME", "name ", "náme", "na\u0301me", "na%", "'; DROP TABLE holdfast_fence; --", strings.Repeat("n", 512)} {
		// The tokens decrease, so a shared mark would refuse the next claim.
		if err := s.advance(t.Context(), s.db, resource, fence.NewClaim(uint64(100-i), "")); err != nil {
			t.Errorf("%.20q: %v", resource, err)
		}
	}
}

// testGivesUp checks that Advance waits for the transaction that has the mark, but not after its
// context ends.
func testGivesUp(t *testing.T, s *store) {
	first, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback()
	if err := s.dialect.Advance(t.Context(), first, "wait", fence.NewClaim(1, "")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.advance(ctx, s.db, "wait", fence.NewClaim(2, "")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another transaction has the mark: %v, want the context's error", err)
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.advance(t.Context(), s.db, "wait", fence.NewClaim(2, "")); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func testMigrate(t *testing.T, s *store) {
	s.exec(t, `DROP TABLE holdfast_fence`)
	s.exec(t, `CREATE TABLE holdfast_fence (name integer)`)
	if err := s.dialect.Migrate(t.Context(), s.db); err == nil {
		t.Error("a table with other columns is taken for that of the marks")
	}
	for range 5 {
		s.exec(t, `DROP TABLE holdfast_fence`)
		s.migrateAtOnce(t)
	}
	if err := s.advance(t.Context(), s.db, "migrated", fence.NewClaim(7, "")); err != nil {
		t.Fatal(err)
	}
	s.exec(t, s.dialect.DDL())
	if err := s.dialect.Migrate(t.Context(), s.db); err != nil {
		t.Errorf("where the table exists: %v", err)
	}
	if token, _ := s.mark(t, "migrated"); token != 7 {
		t.Errorf("the migration changed the mark from 7 to %d", token)
	}
	if err := sqlfence.Dialect(9).Migrate(t.Context(), s.db); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("unknown dialect: %v, want ErrInvalid", err)
	}
	if s.dialect != sqlfence.PostgreSQL {
		return
	}
	s.exec(t, `CREATE ROLE reader LOGIN`)
	s.exec(t, `GRANT SELECT ON holdfast_fence TO reader`)
	if err := s.dialect.Migrate(t.Context(), s.open(t, " user=reader")); err != nil {
		t.Errorf("with the right to read only: %v", err)
	}
}

// migrateAtOnce calls Migrate as many processes do that start together. Each has its own open
// connection, so that the calls overlap.
func (s *store) migrateAtOnce(t *testing.T) {
	const processes = 16
	var ready, done sync.WaitGroup
	ready.Add(processes)
	for range processes {
		db := s.open(t, "")
		defer db.Close()
		done.Go(func() {
			err := db.PingContext(t.Context())
			ready.Done()
			ready.Wait()
			if err == nil {
				err = s.dialect.Migrate(t.Context(), db)
			}
			if err != nil {
				t.Errorf("one of %d at once: %v", processes, err)
			}
		})
	}
	done.Wait()
}
