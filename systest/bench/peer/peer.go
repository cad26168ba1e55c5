// Package peer has one small interface for holdfast and its peers: libraries that lock,
// with their best sensible settings and with their defaults, and floors, which do the least
// that any lock needs.
//
//	peer.go          the interface, and the list of all
//	holdfast.go      holdfast, on rueidis and on go-redis
//	ping.go          two round trips, and nothing else
//	plain.go         SET NX PX and compare-and-delete, with and without a token, on rueidis
//	plain_goredis.go the same on go-redis
//	reference.go     the same, renewed in batches of 500
//	baton.go         a list with one element: BLPOP takes it, RPUSH hands it on
//	redsync.go       redsync on go-redis; redsync_rueidis.go is its pool on rueidis
//	rueidislock.go   the locks of rueidis
//	bsm.go           bsm/redislock
//	etcd.go          etcd's concurrency.Mutex
//	postgres.go      holdfast on PostgreSQL, and locks in plain SQL
//	scripts.go       the floors' scripts, which are in lua/
package peer

import (
	"context"
	"time"
)

// TTL is the TTL of locks with the best settings: long enough that nothing expires during a
// measurement.
const TTL = 30 * time.Second

// A Store is the kind of server of a peer's locks.
type Store string

const (
	Redis       Store = "redis"
	Cluster     Store = "redis cluster, three masters"
	Etcd        Store = "etcd"
	EtcdNoFsync Store = "etcd, fsync off"

	Postgres      Store = "postgres, fsync on"
	PostgresAsync Store = "postgres, synchronous_commit=off"
)

// An Ability is what a workload needs of a peer. Abilities are combined as bits.
type Ability uint

const (
	Takes   Ability = 1 << iota // Try
	Waits                       // Wait
	Keeps                       // renews its locks until they are released
	Batches                     // renews many locks in one request, so that it can hold 100,000
	Tells                       // notifies holders of losses
	Spreads                     // Try, on one server or on a Redis Cluster

	TakesDurably // Try, with its effect on disk
	WaitsDurably // Wait, the same
)

// A Peer is one way to lock, with its settings.
type Peer struct {
	Name     string
	Settings string // in words
	Floor    bool   // a bound, not meant for use
	Default  bool   // with default settings, which are not the best
	Store    Store
	Can      Ability

	// Open connects to a store at host:port. Locks last for ttl; zero means the default of the
	// peer.
	Open opener

	// Key returns the key whose expiry or deletion ends the lock of a name. It is nil if there is
	// no such key.
	Key func(name string) string
}

type opener = func(ctx context.Context, addr string, ttl time.Duration) (Client, error)

// A Client is a peer's connection to its store, one in each process. It is safe for concurrent
// use.
type Client interface {
	// Try takes a free lock.
	Try(ctx context.Context, name string) (Held, error)

	// Wait takes the lock of a name as soon as it can.
	Wait(ctx context.Context, name string) (Held, error)

	Close() error
}

// Held is a lock that was taken.
type Held interface {
	Release(ctx context.Context) error
}

// Told is a Held that notifies its holder of a loss.
type Told interface {
	Lost() <-chan struct{}
}

// A Preparer is a Client that must know a name before it is locked.
type Preparer interface {
	Prepare(ctx context.Context, name string) error
}

// All returns the peers in the order of the tables.
func All() []Peer {
	plainRueidis, fenceRueidis := plainRueidis()
	plainGoRedis, fenceGoRedis := plainGoRedis()
	return append([]Peer{
		ping(),
		plainRueidis, fenceRueidis, plainGoRedis, fenceGoRedis,
		Baton(), reference(),
		holdfastDefault(), holdfastCohort(), HoldfastCluster(), holdfastAlone(), holdfastTold(), holdfastGoRedis(),
		redsyncGoRedis(), redsyncGoRedisDefault(), redsyncRueidis(), redsyncRueidisDefault(),
		rueidislockBest(), rueidislockDefault(),
		bsmBest(), bsmDefault(),
		etcdNoFsync(), etcdDefault(),
	}, postgres()...)
}

// asDefault marks a peer with default settings.
func asDefault(p Peer) Peer {
	p.Default = true
	return p
}

// sameKey is Key for peers whose key is the name.
func sameKey(name string) string { return name }
