// Package redislock is the engine for Redis and Valkey: locks that processes on
// any number of machines share, exclusive or not, with a queue for those who
// wait.
//
//	engine, err := redislock.Open(ctx, "redis://localhost:6379/0?prefix=locks:")
//
// The server must be Redis 6.2 or later, or Valkey. It should not evict keys
// (maxmemory-policy noeviction): an evicted lock is a lost lock.
//
// The engine itself is package rediscore. Its documentation says which keys and
// messages there are, which rights a user needs, and what a failover may take
// back. This package opens stores by their URL, and puts the client, rueidis,
// behind rediscore.Conn:
//
//	engine.go       New, Diagnose, the guard and the member of a quorum
//	open.go         Open: connects, or gives up
//	parse_url.go    what a URL asks for, and the client's options
//	rueidis.go      the client behind rediscore.Conn
//	dial.go         makes a connection, and another beside one that is slow
//	line.go         one connection, which knows since when it owes an answer
//	switchboard.go  all of them, and which of them are given up
//	segments_*.go   the size of packets
//
// # Connections
//
// Concurrent calls share one connection (with New: those of the client) and
// travel in the same packets. A connection that owes an answer for half a second
// is checked by another one beside it, for as long as that takes.
package redislock
