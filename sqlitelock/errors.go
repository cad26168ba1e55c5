package sqlitelock

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// code returns SQLite's primary result code, or 0 if err has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

// isBusy reports whether another connection blocks the statement.
func isBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// refused translates SQLite's error for a request that was certainly not carried out, because it
// failed before the commit. It does not change errors of package driver. Files that were deleted or
// replaced do not return as a rule, so the error wraps ErrClosed, which ends waits: while a waiter
// has the old files open, no process can open the new ones.
func refused(err error) error {
	if other, ok := errors.AsType[onefile.OtherFileError](err); ok {
		if other.Linked {
			return fmt.Errorf("%w: %w", driver.ErrUnavailable, other)
		}
		return fmt.Errorf("%w: %w to this engine: %w", driver.ErrUnavailable, driver.ErrClosed, other)
	}
	switch code(err) {
	case sqlite3.SQLITE_OK:
		return err
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fmt.Errorf("%w: the database cannot be written: give this user the right to write the file and its directory: %w", driver.ErrPermission, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w database: it is not a SQLite file: name another path: %w", driver.ErrInvalid, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: the database is damaged: stop all its users and remove it: %w", driver.ErrUnavailable, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: the disk of the database is full: %w", driver.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: the database failed: %w", driver.ErrUnavailable, err)
}

// lost translates the error of a request about a granted lease: the lease is lost if other
// processes open different files.
func lost(err error) error {
	if other, ok := errors.AsType[onefile.OtherFileError](err); ok {
		return fmt.Errorf("%w: %w", driver.ErrLost, other)
	}
	return err
}

// interrupted returns the error of a request whose ctx ended before anything was done. The
// context's own error would not say that nothing was done.
func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: the request ended before it was carried out: %w", driver.ErrUnavailable, ctx.Err())
}
