package goredislock

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use New to make
// one.
type Engine struct{ *hidden }

// hidden is doctor.Engine under a name whose methods go doc does not list, so that go doc shows
// only what programs call.
type hidden = doctor.Engine

// Close ends the engine. The client stays open. Requests in progress fail.
func (e *Engine) Close() error { return e.hidden.Close() }

var _ driver.Diagnoser = (*Engine)(nil)

// Options configure New. A zero field is the default.
type Options struct {
	// NoForeignClients says that only holdfast takes these locks. Then a contended lock passes from
	// one waiter to the next without ever being free, and waiters do not poll a key that holdfast
	// has not written. By default, clients that poll with SET name x NX PX get turns: a contended
	// lock is left free for 2 ms every 250 ms, and for 20 ms during the minute after such a client
	// held it.
	NoForeignClients bool

	// Prefix comes before the name in every key. It may contain one hash tag,
	// {tag}, to put all locks into one slot, and no other braces. Default:
	// none.
	Prefix string

	// TellDeletions has the server report when the key of an exclusive lease is deleted, evicted or
	// overwritten, from the first renewal on. The holder then learns of the loss within a round
	// trip or two, before its next renewal. Each renewal then costs a message for each lease, and
	// one read of up to 128 of them, on a separate connection (CLIENT TRACKING, MGET). Nothing
	// relies on it: without the right to these commands, with RESP 2, and in a Redis Cluster, the
	// next renewal finds the loss.
	TellDeletions bool

	// TokenMemory is how long the server remembers the last token of an unused name: 1 minute to
	// 365 days, counted from the token, read as microseconds since 1970. Tokens grow even if the
	// server's clock goes back, or the clock of a replica that takes over is behind, by up to this
	// much in total. Meanwhile a name uses about 200 bytes of the server's memory: with millions of
	// names that are used once, an hour may do. All clients of a store should use the same value,
	// because the last to grant a lock decides. Members of a quorum and guards ignore it. Default:
	// 24 hours.
	TokenMemory time.Duration

	// History keeps the latest events of each name, and publishes them as they
	// happen. Engines without it may use the same locks, but record nothing.
	// Default: off.
	History bool
}

// New returns an engine on the caller's client, which the caller closes after the engine. New does
// not block: the first call reports an unreachable server or a closed client.
//
// The client is the result of redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient,
// or of redis.NewUniversalClient if it is one of these. New returns ErrInvalid for:
//
//   - nil, and clients of other types: the engine has to know how the servers
//     belong together.
//   - A Ring: the server of a name depends on which servers the client reaches,
//     so two clients could both get a lock.
//   - A cluster client with a function for its slots, which
//     redis.NewFailoverClusterClient returns: the servers do not correct it when
//     it uses the wrong one, and it may read from replicas.
//   - A client without a ReadTimeout: it would wait for a silent connection
//     without end, and then for the next, until none is left.
//   - Options that are out of range.
func New(client redis.UniversalClient, opts *Options) (*Engine, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	opts = cmp.Or(opts, &Options{})
	e, err := doctor.NewEngine(c, &rediscore.Options{
		NoForeignClients: opts.NoForeignClients, Prefix: opts.Prefix, Database: c.database(),
		TellDeletions: opts.TellDeletions, TokenMemory: opts.TokenMemory, History: opts.History,
	}, noWay)
	if err != nil {
		return nil, err
	}
	return &Engine{e}, nil
}

// noWay returns no way to further servers: Diagnose checks only those that the client uses, and no
// sentinels or replicas behind them.
func noWay(string) (doctor.Way, error) { return doctor.Way{}, nil }
