// Package redislock is the engine for Redis and Valkey: locks that processes on
// any number of machines share, exclusive or not, with a queue for waiters.
//
// # What
//
// [Open] connects to one server, to the master that sentinels name, or to a Redis Cluster. [New]
// uses a client of rueidis that the program already has. Package goredislock does the same with a
// client of go-redis. The server must be Redis 6.2 or later, or Valkey.
//
// The engine itself is package rediscore. Its documentation lists the keys and messages, the rights
// that a user needs, and what a failover may lose.
//
// # Example
//
//	engine, err := redislock.Open(ctx, "redis://localhost:6379/0?prefix=locks:")
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil) // client.Close closes the engine, too
//
// # Guarantees
//
// While the server keeps its data, no two leases that exclude each other are live
// at the same instant of its clock, tokens grow, and waiters are served in the
// order in which the server saw them. A lock and a client that takes its locks with
// SET name NX PX exclude each other under the same key. A lone acquire and its
// release are one command each. docs/guarantees.md has the tests.
//
// # What is not promised
//
// Leases are lost if a replica takes over without the last writes, if a server restarts without
// persistence, and after FLUSHALL or an eviction. The lock can then be granted again while its
// holder still works, until the holder's next renewal. So set maxmemory-policy noeviction, and let
// holdfast doctor check the rest.
//
// # Clocks
//
// The server's clock alone decides when a lease ends. If it jumps forward, leases
// end early; if it goes back, a lock stays closed for its TTL at most.
//
// # Fencing
//
// Tokens also grow across all the losses above, unless the clocks of the servers disagree by more
// than the time since the last lost grant. Options.TokenMemory is how long the last token is
// remembered. Package rediscore/redisfence checks tokens for keys in Redis; package sqlfence does
// for databases.
//
// # Errors
//
// Errors wrap those in package driver, and quote the server. If a server cannot be reached, loads
// its data, is a read-only replica, is out of memory, or refuses writes, the error is
// ErrUnavailable, and nothing was done. Wrong credentials or rights are ErrPermission, and another
// program's key under the name is ErrKindMismatch. A request without a reply is ErrOutcomeUnknown,
// which package holdfast resolves. After a bad option [Open] and [New] return ErrInvalid. No error
// contains a password.
//
// # Testing
//
// Package holdfasttest has a client in memory, in virtual time, for tests of
// programs, and starts a real server for those that need one.
//
// # Connections
//
// Concurrent calls share one connection (with New: the client's) and travel in the same packets. If
// Open connected the engine to one server, a lone caller that makes many calls gets a second
// connection. If a connection has not replied for half a second, the engine of Open probes the
// server on another one until it knows whether the first is dead.
package redislock
