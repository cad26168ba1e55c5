// Package sqlfence guards SQL databases: PostgreSQL, MySQL, MariaDB and SQLite,
// through any driver for database/sql. See package fence for the rule and the
// two verbs.
//
// # What
//
//   - [Dialect.Advance] is the first statement of a transaction and does both
//     verbs: nothing else is needed in that transaction. It keeps its marks in
//     the table holdfast_fence, which [Dialect.Migrate] creates.
//   - [Dialect.Check] is the last statement of a transaction that uses savepoints.
//   - [Dialect.CheckRow] is for rows that carry the token in a column of their
//     own.
//
// # Example
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := sqlfence.PostgreSQL.Advance(ctx, tx, "seat/12A", lease); err != nil {
//		return err // a *fence.StaleError if a later holder has been here
//	}
//	// until the commit no other holder reads or writes the seat
//
// # Guarantees
//
// Advance locks the row of the mark until the transaction ends, so that check and write
// are one step, and two holders come one after the other.
//
// # What is not promised
//
// A transaction that does not begin with Advance, and a statement without CheckRow, is not
// guarded. A mark that was deleted has seen nothing. The rollback of a savepoint undoes an
// Advance inside of it, and releases the lock of the mark: PostgreSQL refuses such an
// Advance, and elsewhere only Check finds it.
//
// # Clocks
//
// None is read.
//
// # Errors
//
// A stale claim is fence.ErrStale, as a *fence.StaleError, and the transaction must be
// rolled back. A malformed claim is driver.ErrInvalid; no row to check is [ErrNoRow];
// savepoints lead to [ErrNested] and [ErrUndone]. Errors of the database are wrapped, so that
// the caller can detect a serialization failure and repeat the transaction.
//
// # Testing
//
// Any database will do, SQLite in memory too: the statements are the same.
//
// # Concurrency
//
// All functions and methods are safe for concurrent use, as far as their
// arguments are: one *sql.Tx belongs to one goroutine.
package sqlfence
