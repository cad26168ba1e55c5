package fencetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// testCost checks that a guarded transaction sends one statement more than the same transaction
// without a guard, and a refused one two.
func testCost(t *testing.T, s *store) {
	s.exec(t, `CREATE TABLE stock (id integer PRIMARY KEY, n integer NOT NULL)`)
	s.exec(t, `INSERT INTO stock VALUES (1, 0)`)
	var sent atomic.Int64
	db := sql.OpenDB(countingConnector{s.db.Driver(), s.dsn, &sent})
	defer db.Close()
	count := func(guards ...fence.Claim) int64 {
		before := sent.Load()
		if err := s.take(t.Context(), db, guards...); err != nil && !errors.Is(err, fence.ErrStale) {
			t.Fatal(err)
		}
		return sent.Load() - before
	}
	plain := count()
	first, repeat, next := count(fence.NewClaim(5, "")), count(fence.NewClaim(5, "")), count(fence.NewClaim(6, ""))
	if plain != 1 || first != 2 || repeat != 2 || next != 2 {
		t.Errorf("statements in a transaction: %d plain, %d on a new resource, %d repeated, %d with a new token; want 1, 2, 2, 2", plain, first, repeat, next)
	}
	if refused := count(fence.NewClaim(4, "")); refused > 2 {
		t.Errorf("a refused transaction sent %d statements, want 2 at most", refused)
	}
}

// take is the transaction whose cost is counted; it has at most one guard.
func (s *store) take(ctx context.Context, db *sql.DB, guards ...fence.Claim) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, c := range guards {
		if err := s.dialect.Advance(ctx, tx, "stock", c); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE stock SET n = n + 1 WHERE id = 1`); err != nil {
		return err
	}
	return tx.Commit()
}

// A countingConnector counts the statements that connections execute.
type countingConnector struct {
	driver driver.Driver
	dsn    string
	sent   *atomic.Int64
}

func (c countingConnector) Driver() driver.Driver { return c.driver }

func (c countingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return countingConn{conn, c.sent}, err
}

// A countingConn offers database/sql only prepared statements, which every driver has, so that
// every statement is counted.
type countingConn struct {
	driver.Conn
	sent *atomic.Int64
}

func (c countingConn) Prepare(query string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(query)
	return countingStmt{s, c.sent}, err
}

func (c countingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

type countingStmt struct {
	driver.Stmt
	sent *atomic.Int64
}

func (s countingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.sent.Add(1)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.sent.Add(1)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// BenchmarkTransaction compares a transaction of one statement with and without a guard.
func BenchmarkTransaction(b *testing.B) {
	server := testsvc.Postgres(b)
	s := &store{dialect: sqlfence.PostgreSQL, driver: "pgx", dsn: server.DSN}
	s.db = s.open(b, "")
	if err := s.dialect.Migrate(b.Context(), s.db); err != nil {
		b.Fatal(err)
	}
	s.exec(b, `CREATE TABLE stock (id integer PRIMARY KEY, n integer NOT NULL)`)
	s.exec(b, `INSERT INTO stock VALUES (1, 0)`)
	for name, guards := range map[string][]fence.Claim{"plain": nil, "guarded": {fence.NewClaim(1, "")}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := s.take(b.Context(), s.db, guards...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
