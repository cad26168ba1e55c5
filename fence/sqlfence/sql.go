package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Tx is a transaction of the caller: a *sql.Tx, or a *sql.Conn on which the
// caller has begun one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A Dialect is a kind of SQL database, and the guard with default options on
// it. Any driver for database/sql will do.
type Dialect int

const (
	PostgreSQL Dialect = iota + 1 // 9.5 or later
	MySQL                         // and MariaDB; InnoDB tables only
	SQLite                        // 3.24 or later
)

// A Guard keeps marks in the table holdfast_fence of a SQL database.
type Guard struct {
	dialect Dialect
	reports *fence.Reporter // nil without options
}

// Options are the options of NewGuard. Nil means the defaults.
type Options struct {
	// Observer gets every decision, which counts once the transaction commits. The
	// transaction does not wait for it.
	Observer observe.Observer
}

// NewGuard makes a guard. It keeps nothing in memory and opens nothing.
func NewGuard(d Dialect, opts *Options) *Guard {
	g := &Guard{dialect: d}
	if opts != nil {
		g.reports = fence.NewReporter(opts.Observer)
	}
	return g
}

// Advance is NewGuard(d, nil).Advance.
func (d Dialect) Advance(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	return NewGuard(d, nil).Advance(ctx, tx, resource, c)
}

// Advance makes the database store the claim, and keeps the resource's mark
// locked until the transaction ends. It must be the first statement of the
// transaction: what is read before it may be out of date. What follows in the
// transaction needs no other check, because no other holder advances before it
// ends; a transaction that is rolled back leaves the mark as it was.
//
// It must not run inside a savepoint, whose rollback would take the mark away while the
// transaction goes on. PostgreSQL shows that, and the error is ErrNested: roll back. The
// others do not: there, end a transaction that uses savepoints with Check.
//
// It blocks while another transaction has the mark, until ctx ends; on SQLite,
// for as long as the connection's busy timeout allows. It returns
// a *fence.StaleError if a later holder came first: roll back. Any other error is
// the database's; roll back, and repeat the transaction if it was a deadlock
// or a serialization failure.
//
// Advance sends one statement if the claim is accepted, and one more to learn
// the mark if not. It is safe under every isolation level from READ COMMITTED
// on. To guard work of several transactions, begin each of them with Advance.
func (g *Guard) Advance(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	if err := fence.CheckClaim(resource, c); err != nil {
		return err
	}
	var err error
	switch g.dialect {
	case PostgreSQL:
		err = upsertPostgreSQL(ctx, tx, resource, c)
	case SQLite:
		err = upsertSQLite(ctx, tx, resource, c)
	case MySQL:
		err = upsertMySQL(ctx, tx, resource, c)
	default:
		return g.dialect.unknown()
	}
	g.reports.Report(ctx, resource, c, err)
	return failed("advance", resource, err)
}

// failed adds the operation and the resource to an error, unless it is a *fence.StaleError, which
// has them.
func failed(what, resource string, err error) error {
	if _, stale := errors.AsType[*fence.StaleError](err); stale || err == nil {
		return err
	}
	return fmt.Errorf("fence: %s %q: %w", what, resource, err)
}

// insertSQL, the name of the resource and unlessStale make an upsert. It locks the row, sees its
// last committed version, and changes nothing unless the claim passes.
const (
	insertSQL   = `INSERT INTO holdfast_fence AS mark (resource, token, lease_id) VALUES (`
	unlessStale = `, $2, $3)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, lease_id = excluded.lease_id
WHERE mark.token < excluded.token OR (mark.token = excluded.token AND mark.lease_id = excluded.lease_id)`
)

// postgresName is the name of a resource, sent as bytes: as text it would be the name of another
// resource on a connection with another client_encoding.
const postgresName = `pg_catalog.convert_from($1, 'UTF8')`

// postgresUpsertSQL also returns whether Advance ran inside a savepoint: then xmin is the
// savepoint's.
const postgresUpsertSQL = insertSQL + postgresName + unlessStale + `
RETURNING mark.xmin::text <> (txid_current() % 4294967296)::text`

func upsertPostgreSQL(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	var nested bool
	err := tx.QueryRowContext(ctx, postgresUpsertSQL, []byte(resource), int64(c.Token()), string(c.ID())).Scan(&nested)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return refused(resource, c, tx.QueryRowContext(ctx, `SELECT token FROM holdfast_fence WHERE resource = `+postgresName, []byte(resource)))
	case nested:
		return fmt.Errorf("%w: begin the transaction with Advance, before any SAVEPOINT", ErrNested)
	}
	return err
}

func upsertSQLite(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	result, err := tx.ExecContext(ctx, insertSQL+`$1`+unlessStale, resource, int64(c.Token()), string(c.ID()))
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err == nil && changed != 1 {
		return refused(resource, c, tx.QueryRowContext(ctx, `SELECT token FROM holdfast_fence WHERE resource = $1`, resource))
	}
	return err
}

// refused returns the error for a claim that was refused. It reads the mark, which stays 0 in the
// error if it cannot be read.
func refused(resource string, c fence.Claim, mark *sql.Row) error {
	stale := &fence.StaleError{Resource: resource, Token: c.Token()}
	_ = mark.Scan(&stale.Current)
	return stale
}

// mysqlUpsertSQL does the same for MySQL, whose upsert has no condition. The
// number of affected rows does not distinguish a refused claim from a repeated
// one, and depends on a flag of the connection. So the result is in the insert
// ID: 0 for an accepted claim, else the mark.
//
// Each assignment sees the earlier ones. The token comes last, because the
// lease ID depends on the old token. The new lease ID does not affect the
// condition of the token: it is only set if the first half of that condition is
// true.
const mysqlUpsertSQL = `INSERT INTO holdfast_fence (resource, token, lease_id) VALUES (?, ?, ?)
ON DUPLICATE KEY UPDATE
lease_id = IF(token < ?, ?, lease_id),
token = IF(token < ? OR (token = ? AND lease_id = ?), ? + LAST_INSERT_ID(0), LAST_INSERT_ID(token))`

func upsertMySQL(ctx context.Context, tx Tx, resource string, c fence.Claim) error {
	token, id := int64(c.Token()), string(c.ID())
	result, err := tx.ExecContext(ctx, mysqlUpsertSQL, resource, token, id, token, id, token, token, id, token)
	if err != nil {
		return err
	}
	current, err := result.LastInsertId()
	if err == nil && current != 0 {
		return &fence.StaleError{Resource: resource, Token: c.Token(), Current: uint64(current)}
	}
	return err
}

func (d Dialect) unknown() error {
	return fmt.Errorf("fence: %w dialect %d: want PostgreSQL, MySQL or SQLite", driver.ErrInvalid, d)
}
