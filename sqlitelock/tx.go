package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// How long a request waits for other processes that use the database. A
// transaction takes well under a millisecond, so that a wait of busyLimit
// means that something is wrong with one of them.
const (
	busyLimit    = 5 * time.Second
	busyFirst    = 200 * time.Microsecond
	busyInterval = 5 * time.Millisecond
)

// transact runs do inside a write transaction and commits if it returns nil.
// It blocks while other requests and processes write, until ctx ends or
// busyLimit is over. Nothing is unknown before the commit: an error of do, or
// the end of ctx, rolls everything back.
//
// Statements run without ctx: they take microseconds, and an interrupt at
// the wrong one would leave the outcome unknown for nothing.
func (e *Engine) transact(ctx context.Context, do func(now instant) error) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.users.Done()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return interrupted(ctx)
	case <-e.closing:
		return driver.ErrClosed
	}

	if err := e.patient(ctx, func() error { return run(e.write.begin) }); err != nil {
		return refused(err)
	}
	// INVARIANT I8: the clock is read under the write lock. A reading from
	// before the wait for it would be old: it would take a lease for live
	// that is over, and record an expiry that is too early.
	now, err := e.clock.now()
	if err == nil {
		err = e.sameFile()
	}
	if err == nil {
		err = do(now)
	}
	if err == nil && ctx.Err() != nil {
		err = interrupted(ctx)
	}
	if err != nil {
		_ = run(e.write.rollback) // fails only if SQLite has rolled back itself
		return refused(err)
	}
	if err := run(e.write.commit); err != nil {
		_ = run(e.write.rollback)
		return fmt.Errorf("the commit failed, and may show after a crash: %w", err)
	}
	return nil
}

// sameFile fails if the database was deleted or replaced: other processes
// would then lock another file, and both would grant.
func (e *Engine) sameFile() error {
	info, err := os.Stat(e.path)
	if err != nil {
		return fmt.Errorf("%w: the database file is gone: open it again: %w", driver.ErrUnavailable, err)
	}
	if !os.SameFile(info, e.file) {
		return fmt.Errorf("%w: the database file was replaced: open it again", driver.ErrUnavailable)
	}
	return nil
}

// query runs a reading request, waiting while the database is busy, which it
// is for readers only while it is being opened or closed.
func (e *Engine) query(ctx context.Context, do func() error) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.users.Done()
	err := e.sameFile()
	if err == nil {
		err = e.patient(ctx, do)
	}
	return refused(err)
}

// patient repeats do while it fails because the database is busy. SQLite's
// own waiting (busy_timeout) does not end with ctx, and grows to 100 ms.
func (e *Engine) patient(ctx context.Context, do func() error) error {
	var limit <-chan time.Time
	for pause := busyFirst; ; pause = min(2*pause, busyInterval) {
		err := do()
		if !isBusy(err) {
			return err
		}
		if limit == nil {
			limit = time.After(busyLimit)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return interrupted(ctx)
		case <-e.closing:
			return driver.ErrClosed
		case <-limit:
			return fmt.Errorf("%w: another process has kept the database busy for %s: see whether one is stopped: %w", driver.ErrUnavailable, busyLimit, err)
		}
	}
}

// run executes a statement that returns no rows.
func run(stmt *sql.Stmt, args ...any) error {
	_, err := stmt.ExecContext(context.Background(), args...)
	return err
}

// changed executes a statement and reports whether it found a row to change.
func changed(stmt *sql.Stmt, args ...any) (bool, error) {
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// one scans the only row of a query, and reports whether there is one.
func one(stmt *sql.Stmt, args []any, into ...any) (bool, error) {
	err := stmt.QueryRowContext(context.Background(), args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
