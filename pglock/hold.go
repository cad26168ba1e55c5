package pglock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Lease is a lease for Hold. *holdfast.Lease is one.
type Lease interface {
	Name() string
	ID() lockinfo.LeaseID
}

// Hold makes a transaction a guard of the lease's lock. Until the transaction ends, no other client
// is granted the lock, even if the lease expires, is released or is broken meanwhile. So no other
// holder reads or writes between the transaction's first statement and its commit, without a mark
// or a token in any table. The lock becomes free soon after the transaction ends; the lease is
// renewed meanwhile as usual.
//
// The transaction is on the database of the engine, with the isolation level READ COMMITTED. It may
// use a connection of another pool and another user, who needs the rights in docs/postgres.md. Hold
// must be its first statement: what it reads earlier may be out of date. Hold must not run inside a
// savepoint, whose rollback would end the guard while the transaction continues. An open
// transaction keeps the lock closed: end it soon, and let idle_in_transaction_session_timeout end
// forgotten ones.
//
// An error that wraps driver.ErrLost means that the lease has ended: roll back. Roll back after
// every other error too; ErrInvalid means a wrong transaction or lease, and ErrPermission a missing
// right of its user. Hold sends one statement, and waits only while the server decides another
// request for the lock. It refuses, with ErrInvalid, a lease that may be handed on
// (holdfast.Options.Cohorts): the next caller would have the lock under the same lease ID.
func (e *Engine) Hold(ctx context.Context, tx pgx.Tx, l Lease) error {
	return e.hold(tx == nil, l, func(live *bool, query string, args ...any) error {
		return tx.QueryRow(ctx, query, args...).Scan(live)
	})
}

// HoldSQL is Hold for a transaction of database/sql, through any driver for PostgreSQL.
func (e *Engine) HoldSQL(ctx context.Context, tx *sql.Tx, l Lease) error {
	return e.hold(tx == nil, l, func(live *bool, query string, args ...any) error {
		return tx.QueryRowContext(ctx, query, args...).Scan(live)
	})
}

// hold is Hold for a transaction that runs a statement by ask. The statement has the name as bytes,
// because the caller's connection may have another encoding.
func (e *Engine) hold(noTx bool, l Lease, ask func(live *bool, query string, args ...any) error) error {
	if noTx || l == nil {
		return fmt.Errorf("pglock: hold: %w argument: the transaction or the lease is nil", driver.ErrInvalid)
	}
	if c, ok := l.(interface{ InCohort() bool }); ok && c.InCohort() {
		return fmt.Errorf("pglock: hold %q: %w lease: it may be handed on within its client (Options.Cohorts): give the acquire a Reason, which keeps it out of cohorts", l.Name(), driver.ErrInvalid)
	}
	var live bool
	err := ask(&live, "SELECT "+e.name+".hold(pg_catalog.convert_from($1, '"+encoding+"'), $2)", []byte(l.Name()), string(l.ID()))
	if err = e.holdError(live, err); err != nil {
		err = fmt.Errorf("pglock: hold %q: %w", l.Name(), err)
	}
	return err
}

// badState is the server's code for an isolation level other than READ COMMITTED.
const badState = "25000"

// holdError returns the error of Hold, or nil if the lease is live.
func (e *Engine) holdError(live bool, err error) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil && live:
		return nil
	case err == nil:
		return fmt.Errorf("%w: roll the transaction back", driver.ErrLost)
	case refused && refusal.Code == badState:
		return fmt.Errorf("%w transaction: %s: begin it with that level, because it must see the present lease", driver.ErrInvalid, refusal.Message)
	case refused:
		return e.installed.refusal(refusal)
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}
