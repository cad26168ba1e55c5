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

// hidden is doctor.Engine by a name under which go doc lists none of its methods, so that
// it shows what programs call.
type hidden = doctor.Engine

// Close ends the engine. The client stays open. Requests that are under way fail.
func (e *Engine) Close() error { return e.hidden.Close() }

var _ driver.Diagnoser = (*Engine)(nil)

// Options configure New. A zero field is the default.
type Options struct {
	// With NoForeignClients only holdfast takes these locks. Then a contended
	// lock goes from one waiter to the next without ever being free, and
	// waiters do not poll a key that holdfast has not written. By default
	// clients that poll with SET name x NX PX get turns: a contended lock is
	// left free for 2 ms every 250 ms, and for 20 ms in the minute after such a
	// client was seen to have it.
	NoForeignClients bool

	// Prefix comes before the name in every key. It may contain one hash tag,
	// {tag}, to put all locks into one slot, and no other braces. Default:
	// none.
	Prefix string

	// TellDeletions has the server report each exclusive lease, from its first
	// renewal on, when its key is deleted, evicted or overwritten, so that the
	// holder knows within a round trip or two, before its next renewal. Each
	// renewal then costs a message for each lease, and one read of up to 128 of
	// them, on a connection of its own (CLIENT TRACKING, MGET). Nothing relies on
	// it: without the right to these commands, with RESP 2, and in a Redis
	// Cluster, the next renewal finds the loss.
	TellDeletions bool

	// TokenMemory is how long the server remembers the last token of a name that is
	// not used any more, counted from the token, read as microseconds since 1970:
	// 1 minute to 365 days. Tokens grow even if the server's clock goes back, or that
	// of a replica which takes over is behind, by as much as this in all. A name costs
	// some 200 bytes of the server's memory meanwhile: with millions of names that are
	// used once, an hour may do. All clients of a store should use the same value, because the
	// last to grant a lock decides. Members of a quorum and guards ignore it.
	// Default: 24 hours.
	TokenMemory time.Duration

	// History keeps the latest events of each name, and publishes them as they
	// happen. Engines without it may use the same locks, but record nothing.
	// Default: off.
	History bool
}

// New returns an engine on a client, which stays the caller's. The caller
// closes it after the engine. It does not block: the first call finds an
// unreachable server or a closed client.
//
// The client is what redis.NewClient, redis.NewFailoverClient or
// redis.NewClusterClient returns, or redis.NewUniversalClient when that is one of
// these. A client that cannot keep locks is ErrInvalid:
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

// noWay: Diagnose looks at the servers that the client uses. Sentinels, and the replicas
// behind them, are left out.
func noWay(string) (doctor.Way, error) { return doctor.Way{}, nil }
