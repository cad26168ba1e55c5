package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
)

// testColumn checks that CheckRow returns the right error, even if the driver counts only the rows
// that an UPDATE changed.
func testColumn(t *testing.T, s *store) {
	s.exec(t, `CREATE TABLE seats (id integer PRIMARY KEY, holder varchar(20) NOT NULL DEFAULT '', fence bigint NOT NULL DEFAULT 0)`)
	s.exec(t, `INSERT INTO seats (id) VALUES (1)`)
	for _, c := range []struct {
		id     int
		token  uint64
		holder string
		want   error
	}{
		{1, 34, "ann", nil},
		{1, 34, "ann", nil}, // a repeat, which changes nothing
		{1, 34, "ben", nil},
		{1, 33, "zombie", fence.ErrStale},
		{1, 33, "ben", fence.ErrStale}, // even if only the fence would change
		{2, 33, "zombie", sqlfence.ErrNoRow},
		{2, 35, "ann", sqlfence.ErrNoRow},
		{1, 35, "ann", nil},
		{1, 34, "ben", fence.ErrStale},
	} {
		err := s.book(t.Context(), c.id, c.holder, c.token)
		if c.want == nil && err != nil || !errors.Is(err, c.want) || (errors.Is(err, fence.ErrStale) && errors.Is(err, sqlfence.ErrNoRow)) {
			t.Errorf("%s books seat %d with %d: %v, want %v", c.holder, c.id, c.token, err, c.want)
		}
	}
	wantStale(t, s.book(t.Context(), 1, "zombie", 33), fence.StaleError{Resource: "seats", Token: 33, Current: 35})
	var holder string
	if err := s.db.QueryRowContext(t.Context(), `SELECT holder FROM seats WHERE id = 1`).Scan(&holder); err != nil || holder != "ann" {
		t.Errorf("the seat is %q's, %v; want ann's", holder, err)
	}

	s.exec(t, `CREATE TABLE loose (id integer PRIMARY KEY, holder varchar(20), fence bigint)`)
	s.exec(t, `INSERT INTO loose (id) VALUES (1)`)
	if err := s.bookIn(t.Context(), "loose", 1, "ann", 3); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a column that is NULL: %v, want ErrInvalid", err)
	}
	s.testLateRow(t)
	s.testOldSnapshot(t)
}

// testOldSnapshot checks that a transaction whose snapshot is older than another holder's write
// gets a StaleError.
func (s *store) testOldSnapshot(t *testing.T) {
	if s.dialect != sqlfence.MySQL {
		return // the other databases end such a transaction with an error
	}
	tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM seats`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := s.book(t.Context(), 1, "cid", 60); err != nil {
		t.Fatal(err)
	}
	result, err := tx.ExecContext(t.Context(), `UPDATE seats SET fence = 59 WHERE id = 1 AND fence <= 59`)
	if repeatable(err) {
		return // later versions of MariaDB also end it with an error
	}
	if err != nil {
		t.Fatal(err)
	}
	row := sqlfence.Row{Resource: "seats", Query: `SELECT fence FROM seats WHERE id = 1`}
	wantStale(t, s.dialect.CheckRow(t.Context(), tx, result, row, fence.NewClaim(59, "")), fence.StaleError{Resource: "seats", Token: 59, Current: 60})
}

// testLateRow checks that a row inserted between the UPDATE and the check does not make the UPDATE
// a success.
func (s *store) testLateRow(t *testing.T) {
	if s.dialect == sqlfence.SQLite {
		return // a transaction with an UPDATE excludes all other writers
	}
	err := s.inTx(t.Context(), func(tx *sql.Tx) error {
		result, err := tx.ExecContext(t.Context(), s.sql(`UPDATE seats SET fence = $1 WHERE id = 7 AND fence <= $2`), 50, 50)
		if err != nil {
			return err
		}
		s.exec(t, `INSERT INTO seats (id, fence) VALUES (7, 49)`)
		row := sqlfence.Row{Resource: "seats", Query: `SELECT fence FROM seats WHERE id = 7`}
		return s.dialect.CheckRow(t.Context(), tx, result, row, fence.NewClaim(50, ""))
	})
	if !errors.Is(err, sqlfence.ErrNoRow) {
		t.Errorf("a row that came after the UPDATE: %v, want ErrNoRow", err)
	}
}

func (s *store) book(ctx context.Context, id int, holder string, token uint64) error {
	return s.bookIn(ctx, "seats", id, holder, token)
}

func (s *store) bookIn(ctx context.Context, table string, id int, holder string, token uint64) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, s.sql(`UPDATE `+table+` SET holder = $1, fence = $2 WHERE id = $3 AND fence <= $4`), holder, int64(token), id, int64(token))
		if err != nil {
			return err
		}
		row := sqlfence.Row{Resource: table, Query: s.sql(`SELECT fence FROM ` + table + ` WHERE id = $1`), Args: []any{id}}
		return s.dialect.CheckRow(ctx, tx, result, row, fence.NewClaim(token, ""))
	})
}

// inTx runs work in a READ COMMITTED transaction, or at the default level of SQLite.
func (s *store) inTx(ctx context.Context, work func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.levels()[0]})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}
