// Package redislock is the engine for Redis and Valkey: exclusive locks that
// processes on any number of machines share.
//
//	engine, err := redislock.Open(ctx, "redis://localhost:6379/0?prefix=locks:")
//
// The server must be Redis 6.2 or later, or Valkey. It should not evict keys
// (maxmemory-policy noeviction): an evicted lock is a lost lock.
//
// # Keys
//
// With the prefix P and the lock's name N:
//
//	key                               holds                              expires
//	PN                                the lease, see below               with the lease
//	Pholdfast:{T}:fence:N             the last token of N, in decimal    24 h after the token, read as microseconds
//	Pholdfast:{T}:cancelled:<ID>      nothing: the lease ID is called    after a minute
//	                                  off
//	Pholdfast:{T}:released:N          no key: the channel on which a     -
//	                                  release of N is published
//	Pholdfast:{T}:mark:R              token and lease ID that a Guard    24 h after the resource; see below
//	                                  has seen for the resource R, of
//	                                  which the key is PR
//
// T puts all keys of a name into the slot of the lock itself: it is the hash
// tag of PN if that has one, else PN, or a number of the same slot if PN
// contains a closing brace that ends no hash tag.
//
// The lease is a plain string: lease ID, token, TTL in milliseconds, and the
// holder as JSON, with a space between, and with a '-' in front if the lease
// is over and the name is kept closed. So holdfast and any client that takes
// its locks with SET key value NX PX exclude each other under the same name.
// Such a client shows as a holder without a lease ID. It must delete only what
// it wrote, and a lock that it takes is not listed by List.
//
// Names that begin with "holdfast:{" are reserved.
//
// The mark of a resource without a TTL has none. If the resource has one, or
// does not exist, the mark expires 24 h (driver.TokenMemory) after the
// resource does, or after the last accepted claim.
//
// # Rights
//
// A user needs the commands evalsha, eval, exists, get, set, del, pttl,
// pexpire, time, publish, subscribe, unsubscribe and scan, and the keys and
// channels that begin with the prefix. Without publish or subscribe locks
// work, and waiting relies on timers. A Guard needs evalsha, eval, type,
// getrange, get, set, pttl, pexpire and persist, del for Delete, and what its
// scripts run.
//
// # Failover
//
// A lease excludes as long as the server keeps its data and its clock does
// not jump forward. Replication is asynchronous: when a replica takes over
// that had not yet seen the latest leases, those locks can be granted again
// while their holders still work. They learn of it by their next renewal. The
// new tokens are greater all the same, unless the servers' clocks disagree by
// more than the time between the last lost grant and the next one, because a
// token is never below the server's clock in microseconds. So a resource that
// checks tokens stays safe; one that does not is as safe as the replication.
// The same holds for FLUSHALL, and for a restart without persistence.
//
// A clock that goes back keeps a lock closed no longer than its TTL: who finds
// an expiry further away than the TTL brings it back.
//
// # Concurrency
//
// An Engine is safe for concurrent use. Concurrent calls share one connection
// (with New: those of the client) and travel in the same packets. Each call sends its request once; it is sent a
// second time only when the server answers that it does not know the script,
// which it does before it runs anything. The first Watch starts one
// goroutine and one connection, for all watches of the engine; Close ends
// both.
package redislock
