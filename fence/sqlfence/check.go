package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/fence"
)

// The errors of transactions with savepoints.
var (
	// ErrNested: Advance ran inside a savepoint, whose rollback would take the mark and
	// its lock away. Roll the transaction back, and begin it with Advance.
	ErrNested = errors.New("the guard was advanced inside a savepoint")

	// ErrUndone: the mark is not the claim's, although no later holder was here: the
	// Advance was undone by ROLLBACK TO SAVEPOINT, or there was none. Roll the transaction
	// back, and repeat it.
	ErrUndone = errors.New("the transaction does not have the mark")
)

// Check is NewGuard(d, nil).Check.
func (d Dialect) Check(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	return NewGuard(d, nil).Check(ctx, tx, resource, c)
}

// Check makes sure that the mark is the claim's, and keeps it locked until the
// transaction ends. A transaction that uses savepoints calls it as its last statement
// before the commit, outside of all of them: a ROLLBACK TO takes away what an Advance
// inside of the savepoint has done, and the lock with it. Check changes nothing, and does
// not take the place of Advance.
//
// It returns a *fence.StaleError if a later holder was here, and ErrUndone if there is no
// mark or it is an older holder's. Roll back in both cases. The other errors, and the wait,
// are the same as for Advance. It sends one statement, on SQLite two.
//
// Check sees the present mark. It does not notice that an Advance was undone and then
// repeated; data read in between may be out of date.
func (g *Guard) Check(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	if err := fence.CheckClaim(resource, c); err != nil {
		return err
	}
	const read = `SELECT token, lease_id FROM holdfast_fence WHERE resource = `
	var mark *sql.Row
	switch g.dialect {
	case PostgreSQL:
		mark = tx.QueryRowContext(ctx, read+postgresName+` FOR UPDATE`, []byte(resource))
	case MySQL:
		mark = tx.QueryRowContext(ctx, read+`? FOR UPDATE`, resource)
	case SQLite: // a write locks the whole file, and a read locks nothing
		if _, err := tx.ExecContext(ctx, `UPDATE holdfast_fence SET token = token WHERE resource = $1`, resource); err != nil {
			return failed("check", resource, err)
		}
		mark = tx.QueryRowContext(ctx, read+`$1`, resource)
	default:
		return g.dialect.unknown()
	}
	err := checkMark(mark, resource, c)
	if err != nil { // a claim that passes was reported by Advance
		g.reports.Report(ctx, resource, c, err)
	}
	return failed("check", resource, err)
}

// checkMark compares the mark that was read with a claim.
func checkMark(row *sql.Row, resource string, c fence.Claim) error {
	var token uint64
	var id string
	switch err := row.Scan(&token, &id); {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case token < c.Token():
		return fmt.Errorf("%w of token %d: its Advance was undone by ROLLBACK TO SAVEPOINT, or there was none; roll back, and repeat the transaction", ErrUndone, c.Token())
	case token > c.Token() || id != string(c.ID()):
		return &fence.StaleError{Resource: resource, Token: c.Token(), Current: token}
	}
	return nil
}
