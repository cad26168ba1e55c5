// Package pglock is the engine for PostgreSQL: programs on many hosts share locks in the
// database that they have already.
//
// # What
//
// [Open] connects to a server by a URL, and [New] by the settings of the program's
// connection pool. The locks are rows in a schema of their own, and each request is one
// statement. The server must be PostgreSQL 13 or later. A pooler such as PgBouncer may be
// in between, in transaction mode too.
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
// The server decides each request under the row lock of its name, so that conflicting
// leases are never live at once. A grant follows the server's setting
// synchronous_commit, and reaches the server's disk at least.
//
// # What is not promised
//
// A server that fails over to a standby without the latest commits may forget leases. With
// synchronous standbys it does not.
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
// Package driver defines the errors. A server that cannot be reached, is read-only or ends the
// statement, as statement_timeout and lock_timeout do, is ErrUnavailable, and nothing was
// done; a right that is missing is ErrPermission, and the error has the GRANT to run. A
// request whose answer did not arrive is ErrOutcomeUnknown, which package holdfast resolves;
// so is one that was committed without the synchronous standby. No error has a password.
//
// # Testing
//
// A schema of the test's own is a real store: see Options.Schema. For leases of hours in no
// time there is package holdfasttest, whose client is in memory.
package pglock
