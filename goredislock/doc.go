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
// broke, its answer did not come in time, or the server is not ready; ours forbid
// that (NoRetry). holdfast repeats requests itself, within the time that is left, and
// reports it. A cluster client still follows a redirection to another node, because
// nothing was done then.
//
// No connection of the pool is kept: a request has one for a round trip, and a lease
// or a waiter has none. A pool of one is enough. An acquire that waits for replicas
// keeps its connection until they have answered.
//
// A request with a deadline waits for a connection of the pool for half of the time
// that it has. So a renewal that finds none fails while the lease lasts, with an event
// and an error that name the pool, and is repeated. The lease ends at its deadline.
//
// # What is not promised
//
// A failover, a restart without persistence, FLUSHALL or an eviction loses the same
// as with redislock. The client gives a silent connection up after its ReadTimeout,
// and so for each connection of its pool. A pool whose connections others keep busy,
// by BLPOP for example, can cost a lease.
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
// closed is ErrClosed. If no connection could be made, or none of the pool became
// free within its PoolTimeout, nothing was sent: ErrUnavailable. After a connection
// that broke or was silent the outcome is unknown. [New] returns ErrInvalid, with the
// reason. No error contains a password.
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
// takes two, of a client with the same options, because go-redis reads unrequested
// messages of a server only while it waits for a reply. The user then also needs the
// right to client|id.
package goredislock
