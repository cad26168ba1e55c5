package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/pglock"
)

// connections is the number of connections of each peer on PostgreSQL.
const connections = 16

func postgresURL(addr, options string) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&pool_max_conns=%d%s", addr, connections, options)
}

// holdfastPostgres is holdfast on PostgreSQL.
func holdfastPostgres(name, settings string, store Store, can Ability, options string) Peer {
	return holdfastOn(name, settings, store, can, holdfast.Options{}, func(ctx context.Context, addr string) (driver.Engine, error) {
		return pglock.Open(ctx, postgresURL(addr, options))
	})
}

// A way is a way to lock with plain SQL statements.
type way struct {
	tables string // makes the tables
	take   func(ctx context.Context, c *rowsClient, name string) (Held, error)
}

// byRows returns a peer that locks by rows. It cannot wait.
func byRows(name, settings string, store Store, w way) Peer {
	return Peer{
		Name: name, Settings: settings, Floor: true, Store: store, Can: TakesDurably,
		Open: func(ctx context.Context, addr string, _ time.Duration) (Client, error) {
			pool, err := pgxpool.New(ctx, postgresURL(addr, ""))
			if err != nil {
				return nil, err
			}
			if _, err := pool.Exec(ctx, w.tables); err != nil {
				pool.Close()
				return nil, err
			}
			return &rowsClient{pool: pool, way: w}, nil
		},
	}
}

type rowsClient struct {
	noWait
	pool *pgxpool.Pool
	way  way
	made sync.Map // names whose rows were made
}

func (c *rowsClient) Try(ctx context.Context, name string) (Held, error) {
	return c.way.take(ctx, c, name)
}

func (c *rowsClient) Close() error {
	c.pool.Close()
	return nil
}

// make makes the row of a name, once per client.
func (c *rowsClient) make(ctx context.Context, sql, name string) error {
	if _, there := c.made.Load(name); there {
		return nil
	}
	_, err := c.pool.Exec(ctx, sql, name)
	c.made.Store(name, nil)
	return err
}

// A release is a Held.
type release func(ctx context.Context) error

func (r release) Release(ctx context.Context) error { return r(ctx) }

// twoUpserts is the floor of every durable lock: it writes two rows, each in one statement, and
// takes no lock.
var twoUpserts = way{
	tables: `CREATE TABLE IF NOT EXISTS upserted (name text PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50)`,
	take: func(ctx context.Context, c *rowsClient, name string) (Held, error) {
		upsert := func(ctx context.Context) error {
			_, err := c.pool.Exec(ctx, `INSERT INTO upserted AS u VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = u.n + 1`, name)
			return err
		}
		return release(upsert), upsert(ctx)
	},
}

// inTransaction locks while a transaction is open. The transaction keeps its connection.
func inTransaction(ctx context.Context, c *rowsClient, lock, name string) (Held, error) {
	tx, err := c.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	var locked bool
	err = tx.QueryRow(ctx, lock, name).Scan(&locked)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !locked {
		err = errHeld
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return release(tx.Commit), nil
}

// skipLocked is the row lock of a job queue. It ends with the connection, and has no token.
var skipLocked = way{
	tables: `CREATE TABLE IF NOT EXISTS job (name text PRIMARY KEY)`,
	take: func(ctx context.Context, c *rowsClient, name string) (Held, error) {
		if err := c.make(ctx, `INSERT INTO job VALUES ($1) ON CONFLICT DO NOTHING`, name); err != nil {
			return nil, err
		}
		return inTransaction(ctx, c, `SELECT true FROM job WHERE name = $1 FOR UPDATE SKIP LOCKED`, name)
	},
}

var advisoryTransaction = way{
	tables: `SELECT 1`,
	take: func(ctx context.Context, c *rowsClient, name string) (Held, error) {
		return inTransaction(ctx, c, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, name)
	},
}

// advisorySession keeps a connection too, and does not work behind a pooler in transaction mode.
var advisorySession = way{
	tables: `SELECT 1`,
	take: func(ctx context.Context, c *rowsClient, name string) (Held, error) {
		conn, err := c.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		call := func(ctx context.Context, sql string) error {
			var done bool
			err := conn.QueryRow(ctx, sql, name).Scan(&done)
			if err == nil && !done {
				err = errHeld
			}
			return err
		}
		if err := call(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`); err != nil {
			conn.Release()
			return nil, err
		}
		return release(func(ctx context.Context) error {
			defer conn.Release()
			return call(ctx, `SELECT pg_advisory_unlock(hashtextextended($1, 0))`)
		}), nil
	},
}

// leaseRow works like libraries with a lease in a table: a serializable transaction of several
// statements takes the lock, and another one releases it. Waiters look again after the length of
// a lease, and holders renew their leases one by one.
var leaseRow = way{
	tables: `CREATE TABLE IF NOT EXISTS lease_row (name text PRIMARY KEY, version bigint, data bytea, owner text);
		CREATE SEQUENCE IF NOT EXISTS lease_row_version`,
	take: func(ctx context.Context, c *rowsClient, name string) (Held, error) {
		owner := value()
		version, err := leaseRowStep(ctx, c, `INSERT INTO lease_row AS l (name, version, owner) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET version = $2, owner = $3 WHERE l.owner = ''`, name, owner)
		return release(func(ctx context.Context) error {
			_, err := leaseRowStep(ctx, c, `UPDATE lease_row SET version = $2, owner = '' WHERE name = $1 AND owner = $3 AND version = `+fmt.Sprint(version), name, owner)
			return err
		}), err
	},
}

// leaseRowStep runs one of the two transactions.
func leaseRowStep(ctx context.Context, c *rowsClient, sql, name, owner string) (version int64, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT nextval('lease_row_version')`).Scan(&version); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sql, name, version, owner); err != nil {
			return err
		}
		var now int64
		if err := tx.QueryRow(ctx, `SELECT version FROM lease_row WHERE name = $1`, name).Scan(&now); err != nil {
			return err
		}
		if now != version {
			return errHeld
		}
		return nil
	})
	return version, err
}

// postgres returns the peers on PostgreSQL.
func postgres() []Peer {
	return []Peer{
		byRows("two upserts", "INSERT … ON CONFLICT", Postgres, twoUpserts),
		byRows("two upserts async", "synchronous_commit=off", PostgresAsync, twoUpserts),
		byRows("SKIP LOCKED", "SELECT … FOR UPDATE in a transaction", Postgres, skipLocked),
		byRows("advisory transaction", "pg_try_advisory_xact_lock", Postgres, advisoryTransaction),
		byRows("advisory session", "pg_try_advisory_lock", Postgres, advisorySession),
		byRows("lease row", "two serializable transactions", Postgres, leaseRow),
		holdfastPostgres("holdfast postgres", "defaults", Postgres, TakesDurably|WaitsDurably, ""),
		holdfastPostgres("holdfast postgres history", "history=1", Postgres, TakesDurably, "&history=1"),
		holdfastPostgres("holdfast postgres async", "synchronous_commit=off", PostgresAsync, TakesDurably, ""),
	}
}
