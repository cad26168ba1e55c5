// Package rediscore is the engine for Redis and Valkey on any client. Processes on any number of
// machines share its locks, which may be exclusive or not and have a queue for waiters. The package
// needs the standard library only. A client implements [Conn]. Most programs use package redislock,
// whose Conn uses rueidis.
//
//	engine := rediscore.New(conn, nil)
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
//	Pholdfast:{T}:fence:N             the last token of N, in decimal    TokenMemory after the token, read as microseconds,
//	                                                                     and not while N is held or kept closed
//	Pholdfast:{T}:cancelled:<ID>      nothing: the lease ID is           after a minute
//	                                  cancelled
//	Pholdfast:{T}:holders:N           shared leases, or permits: their   soon after
//	                                  ends, in a sorted set              the last of them
//	Pholdfast:{T}:queue:N             who waits, in order, in a sorted   soon after
//	                                  set                                the last place
//	Pholdfast:{T}:detail:N            a hash: what else is known of      soon after
//	                                  these leases and places            all of them
//	Pholdfast:{T}:record:N            the lease ID that completed N, or  after the
//	                                  32 dashes, and the record          retention
//	Pholdfast:{T}:broken:N            which leases were broken, by       24 h after
//	                                  whom, why and when                 the last
//	Pholdfast:{T}:detail:N and "\nhistory"
//	                                  with Options.History, what has     28 h after an
//	                                  happened to leases of N lately,    event, or the end
//	                                  in a list                          of a lease, or less
//	Pholdfast:{T}:detail:N and "\ncrowd"
//	                                  what those did who waited, in a    28 h after it
//	                                  list
//	Pholdfast:{D}:onetime:D           what has become of the one-time    after TTL and
//	                                  token with the digest D, and by    Memory
//	                                  which request
//	Pholdfast:{D}:payload:D           its payload, as it is              with the TTL, or
//	                                                                     after RedeemGrace
//	Pholdfast:{T}:mark:R              token and lease ID that a Guard    24 h after the resource; see below
//	                                  has seen for the resource R, of
//	                                  which the key is PR
//
// T is the hash tag of PN if PN has one, so that all keys of a name are in the slot of the lock
// itself. Otherwise T is PN, or, if PN contains a closing brace that ends no hash tag, zeros and
// ones that hash to the same slot.
//
// An exclusive lease is a plain string of fields with a space between: 1, the number of the layout;
// the lease ID; the TTL in milliseconds; the token; the server's clock in microseconds when the
// lease was granted; and the holder as JSON. A '-' directly before the lease ID means that the
// lease has ended and the name is kept closed. A slash and the proposer directly after it mean that
// an engine of a quorum has proposed the lease and no extend has confirmed it yet. While there are
// shared leases or permits the string is 1 *<group> <limit>, and expires with the last of
// them. So holdfast and any client that takes its locks with SET key value NX PX exclude each other
// under the same name. Such a client shows as a holder without a lease ID. It must delete only what
// it wrote. It takes no turns, and List shows its lock only while a holdfast client waits. Waiters
// notice its actions with their next Refresh.
//
// A name that another version of holdfast keeps in another layout is refused with [ErrLayout], and
// left unchanged. The number of the layout is in the lock's key, and in the detail, which exists
// whenever holders or queue do. The key of the last token is the same in every layout.
//
// A lock whose key is deleted is free. Deleting the other keys never makes two holders. Without
// holders or detail a shared name stays closed until its key expires. Without queue or detail the
// places are lost, and their owners are notified.
//
// Names that begin with "holdfast:{" are reserved.
//
// The mark of a resource that has no TTL does not expire. If the resource has one, or does not
// exist, the mark expires 24 h (driver.TokenMemory) after the resource does, or after the last
// accepted claim.
//
// # Messages
//
// The name of a channel contains the number of the database, here 0.
//
// An engine that waits listens on one channel, Pholdfast:inbox:0:<random ID>. An engine that hands
// a lock over publishes there <lease ID> <token>, once for each lease; token 0 requests a Refresh.
// The message to a waiter of the same engine is part of the reply to a release instead. Nothing is
// published when no client waits.
//
// An engine that waits, or whose client has held a lease for some 50 ms, also listens on
// Pholdfast:inbox:0:all. Break publishes there <lease ID> and, as JSON, name, author and reason,
// once for each lease that it ends. The holder's client then ends the context of the lease. A
// client that may publish there and knows a lease ID could release the lease anyway. It can make
// the holder stop, but it cannot make two clients hold the lock.
//
// Engines with Options.History publish each event on Pholdfast:inbox:0:feed if the channel
// Pholdfast:inbox:0:heard has a subscriber on the same node of a cluster. No message is sent on the
// latter.
//
// # Rights
//
// A user needs the keys and channels that begin with the prefix, and the commands evalsha, eval,
// exists, get, set, del, pttl, pexpire, time and scan; for queues, shared leases and semaphores
// also mget, unlink, pexpireat, zadd, zrem, zcard, zcount, zscore, zmscore, zrank, zrange,
// zrangebyscore, hget, hmget, hset, hdel and hscan; for records getrange and strlen; to break
// leases and for one-time tokens nothing more; for TellDeletions client|tracking; for History
// rpush, rpop, ltrim, llen, lrange and pubsub. A Member needs the first of these, and info. Without
// publish or subscribe, locks work and waiting relies on timers. A Guard needs evalsha, eval, type,
// getrange, get, set, pttl, pexpire and persist, del for Delete, and the commands of its scripts.
//
// # Failover
//
// A lease excludes as long as the server keeps its data and its clock does not jump forward.
// Replication is asynchronous. If a replica takes over that had not seen the latest leases, those
// locks can be granted again while their holders still work. The holders learn of it by their next
// renewal. The new tokens are greater all the same, because a token is never below the server's
// clock in microseconds, unless the servers' clocks disagree by more than the time between the last
// lost grant and the next one. So a resource that checks tokens stays safe; one that does not is as
// safe as the replication. The same holds for FLUSHALL, and for a restart without persistence.
//
// A clock that goes back keeps a lock closed no longer than its TTL, and a place no longer than its
// own: a client that finds a later expiry corrects it.
//
// # One-time tokens
//
// Redis deletes their keys by itself: a payload when its TTL ends, on revoke, or RedeemGrace after
// the redeem, and the rest after Memory. A client that can read the keys can read payloads, but no
// secrets. A failover may lose the latest changes, as with leases: a token that was redeemed or
// revoked is then fresh again, and a new one is unknown. A clock that goes back makes fresh tokens
// last longer by as much; a token that was once found expired stays so.
//
// # Concurrency
//
// An Engine is safe for concurrent use. If the connection is a Direct, up to MostDirect callers
// make their calls on their own goroutines. Plain requests that arrive while three calls to their
// server are in flight share the next call; no request is delayed to fill it. In a Redis Cluster
// they share a write, with a call for each slot. If a plain script cannot serve a request, the
// engine repeats it with the full script.
//
// A call sends its request once, and a second time in two cases. If the server does not know the
// script, it has run nothing. If the connection was given up for a new one, the request is one
// whose repeat has the reply of the first. The deadline counts from the first sending.
//
// The first place in a queue starts one goroutine and one connection, which all watches of
// the engine share. So does the first lease that is held for longer than short work takes.
// With TellDeletions the first renewal starts another connection. Close ends them all.
package rediscore
