// Package pglock is the engine for PostgreSQL: programs on many hosts share locks in a database
// that they already have.
//
// # What
//
// [Open] connects to a server by URL, and [New] with the settings of the program's connection pool.
// The locks are rows in a separate schema, and each request is one statement. The server must be
// PostgreSQL 13 or later. A pooler such as PgBouncer may be in between, even in transaction mode.
//
// # Example
//
//	engine, err := pglock.Open(ctx, "postgres://app@db.example/billing")
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil) // client.Close closes the engine, too
//
// # Guarantees
//
// The server decides each request under the row lock of its name, so that conflicting leases are
// never live at once. A grant follows the server's setting synchronous_commit, and reaches at least
// the server's disk.
//
// # What is not promised
//
// A failover to a standby without the latest commits may lose leases. With synchronous standbys it
// does not.
//
// # Clocks
//
// The store's clock is the wall clock of the primary. If it is set forward, or if a standby
// whose clock is ahead takes over, leases end early.
//
// # Fencing
//
// Tokens follow the server's clock in microseconds, and grow even if it steps back.
//
// # Errors
//
// Package driver defines the errors. If a server cannot be reached, is read-only or ends the
// statement, as statement_timeout and lock_timeout do, the error is ErrUnavailable, and nothing was
// done. A missing right is ErrPermission, and the error has the GRANT to run. A request without a
// reply is ErrOutcomeUnknown, which package holdfast resolves; so is a request that was committed
// without the synchronous standby. No error contains a password.
//
// # Testing
//
// A schema of the test's own is a real store: see Options.Schema. To test leases of hours in
// virtual time, use package holdfasttest, whose client is in memory.
package pglock
