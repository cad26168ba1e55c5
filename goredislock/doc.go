// Package goredislock is the engine for Redis and Valkey on a client of go-redis
// that the program has already: its pool, its hooks, its time-outs, its TLS and its
// user.
//
// # What
//
// [New] takes a client of one server, of the master that sentinels name, or of a
// Redis Cluster, and refuses those that cannot keep locks. The client stays the
// caller's: nothing here changes its options or hooks, or closes it. Package
// redislock does the same on connections of its own, and opens stores by their URLs.
// The server must be Redis 6.2 or later, or Valkey.
//
// The engine itself is package rediscore, as in redislock: keys, scripts,
// queue, guards, members of a quorum, doctor and one-time tokens are the same. Programs with the
// one and with the other share locks, places and tokens.
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
// They are the ones of redislock, at the same cost for the server. Besides:
//
// Each request is sent once. go-redis repeats a command by itself when its connection
// broke, its answer did not come in time, or the server is not ready; ours say that
// they must not be (NoRetry). What may be repeated, holdfast repeats, within the time
// that is left, and reports it. A cluster client still follows the server to another
// node, as nothing was done then.
//
// No connection of the pool is kept: a request has one for a round trip, and neither a
// lease nor a waiter has any. All works with a pool of one. An acquire that waits for
// replicas keeps its connection until they have answered.
//
// A request with a deadline waits for a connection of the pool for half of the time
// that it has. So a renewal that finds none fails while the lease lasts, with an event
// and an error that name the pool, and is repeated. The lease ends at its deadline.
//
// # What is not promised
//
// What a failover, a restart without persistence, FLUSHALL or an eviction takes back
// is as with redislock. How soon a connection that has gone silent is given up is the
// client's ReadTimeout, for each connection of its pool. A pool whose connections
// others keep busy, by BLPOP for example, can cost a lease.
//
// A hook that answers in place of the server, or answers after a timeout, may report an outcome
// that did not happen.
//
// # Clocks
//
// The server's clock alone decides when a lease ends; see redislock. This package reads no
// clock.
//
// # Fencing
//
// Both engines issue the tokens of a name from one growing sequence. Package
// rediscore/redisfence checks them for keys in Redis; package sqlfence does for databases.
//
// # Errors
//
// They are the errors of package driver, and quote the server. A client that is
// closed is ErrClosed. Where no connection could be made, or none of the pool became
// free within its PoolTimeout, nothing was sent: ErrUnavailable. After a connection
// that broke or was silent the outcome is unknown. [New] answers ErrInvalid, with the
// reason; no error has a password in it.
//
// # Testing
//
// Package holdfasttest has a client in memory, in virtual time, for tests of
// programs, and starts a real server for those that need one.
//
// # Connections
//
// Requests that come while three calls are in flight share the next call, so three
// connections of the pool carry nearly all requests.
//
// An engine whose client waits, or has held a lease for a while, has one connection
// outside the pool, as go-redis makes them for subscriptions. Options.TellDeletions
// takes two, of a client with the same options, because go-redis reads what a server
// says by itself only while it waits for something; the user needs the right to
// client|id for it, besides those that rediscore names.
package goredislock
