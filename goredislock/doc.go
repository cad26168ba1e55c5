// Package goredislock is the engine for Redis and Valkey on a client of go-redis that the program
// already has, with its pool, hooks, time-outs, TLS and user.
//
// # What
//
// [New] takes a client of one server, of the master that sentinels name, or of a Redis Cluster, and
// refuses clients that cannot keep locks. The client stays the caller's: the package does not
// change its options or hooks, and does not close it. Package redislock does the same on its own
// connections, and opens stores by URL. The server must be Redis 6.2 or later, or Valkey.
//
// The engine itself is package rediscore, as in redislock: keys, scripts, queue, guards, members of
// a quorum, doctor and one-time tokens are the same. Programs that use one and programs that use
// the other share locks, places and tokens.
//
// # Example
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // as the program has it
//	engine, err := goredislock.New(client, nil)
//	if err != nil {
//		return err
//	}
//	locks, err := holdfast.New(engine, nil) // locks.Close closes the engine, and not client
//
// # Guarantees
//
// They are the same as for redislock, at the same cost for the server. In addition:
//
// Each request is sent once. go-redis repeats a command by itself if its connection broke, its
// reply did not arrive in time, or the server is not ready; the engine's commands forbid that
// (NoRetry). holdfast repeats requests itself, within the remaining time, and reports it. A cluster
// client still follows a redirection to another node, because the first node did nothing.
//
// No connection of the pool is kept: a request uses one for a round trip, and a lease or a waiter
// uses none. A pool of one is enough. An acquire that waits for replicas keeps its connection until
// they have acknowledged.
//
// A request with a deadline waits for a connection of the pool for half of the remaining time. So a
// renewal that gets none fails while the lease lasts, with an event and an error that name the
// pool, and is retried. The lease ends at its deadline.
//
// # What is not promised
//
// A failover, a restart without persistence, FLUSHALL or an eviction loses the same as with
// redislock. The client gives up a silent connection after its ReadTimeout, and so for each
// connection of its pool. If other commands keep all connections of the pool busy, for example
// BLPOP, a lease can be lost.
//
// A hook that replies in place of the server, or after a timeout, may report an outcome that did
// not happen.
//
// # Clocks
//
// The server's clock alone decides when a lease ends; see redislock. This package reads no
// clock.
//
// # Fencing
//
// Both engines draw the tokens of a name from one growing sequence. Package rediscore/redisfence
// checks tokens for keys in Redis; package sqlfence does for databases.
//
// # Errors
//
// Errors wrap those in package driver, and quote the server. A closed client is ErrClosed. If no
// connection could be made, or none in the pool became free within its PoolTimeout, nothing was
// sent: ErrUnavailable. After a connection broke or was silent the outcome is unknown. [New]
// returns ErrInvalid, with the reason. No error contains a password.
//
// # Testing
//
// Package holdfasttest has a client in memory, in virtual time, for tests of
// programs, and starts a real server for those that need one.
//
// # Connections
//
// Requests that arrive while three calls are in flight share the next call, so three connections of
// the pool carry nearly all requests.
//
// An engine whose client waits, or has held a lease for a while, has one connection outside the
// pool, as go-redis makes them for subscriptions. Options.TellDeletions uses two, of a separate
// client with the same options, because go-redis reads unrequested messages of a server only while
// it waits for a reply. The user then also needs the right to client|id.
package goredislock
