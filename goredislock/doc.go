// Package goredislock is the engine for Redis and Valkey on a client of go-redis
// that the program has already: its pool, its hooks, its time-outs, its TLS and its
// user. Package redislock is the same on connections of its own.
//
// # What
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // as the program has it
//	engine, err := goredislock.New(client, nil)
//	if err != nil { ... }
//	locks, err := holdfast.New(engine, nil)
//
// The client is one of a single server, of a master that sentinels name, or of a
// Redis Cluster; see [New] for those that are refused. It stays the caller's:
// nothing here changes its options or hooks, or closes it.
//
// The engine itself is package rediscore, as that of redislock is: keys, scripts,
// queue, guard, doctor and one-time tokens are the same, and programs with the one
// and with the other share locks, places and tokens. What is here puts go-redis
// behind rediscore.Conn:
//
//	engine.go        New, Diagnose, the guard and the member of a quorum
//	conn.go          which clients are taken, and their nodes
//	sender.go        requests, each of which is sent once
//	session.go       a connection for one thing
//	subscription.go  the one on which the engine hears of grants and breaks
//	errors.go        what the client's errors mean
//
// # Connections
//
// A request takes a connection of the client's pool for one round trip, and none is
// held in between: neither by a lease nor by whoever waits. Of what comes while two
// calls are under way much travels in the next, so two connections carry nearly all
// there is. Only an acquire that waits for replicas keeps one for longer. All of it
// works with a pool of one.
//
// An engine whose client waits, or has held a lease for a while, has one connection
// more, beside the pool, as go-redis makes them for subscriptions.
//
// # Requests are sent once
//
// go-redis repeats a command by itself, up to MaxRetries times, if the connection
// broke or the answer did not come in time. The engine's requests say that they
// must not be (NoRetry): holdfast repeats what may be repeated, within the time that
// is left, and tells of it. A cluster client still follows the server to another
// node, as the server has done nothing then.
package goredislock
