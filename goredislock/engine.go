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

// Close ends what the engine does. The client stays open. Requests that are under way fail.
func (e *Engine) Close() error { return e.hidden.Close() }

var _ driver.Diagnoser = (*Engine)(nil)

// Options configure New. A zero field is the default.
type Options struct {
	// With NoForeignClients only holdfast takes these locks. Then a
	// contended lock is handed on from one waiter to the next without ever
	// being free, and a key that holdfast has not written is not watched
	// closely. By default clients that poll with SET name x NX PX get turns: a
	// contended lock is left free for 2 ms every 250 ms, and for 20 ms in the
	// minute after such a client was seen to have it.
	NoForeignClients bool

	// Prefix comes before the name in every key. It may contain one hash tag,
	// {tag}, to put all locks into one slot, and no other braces. Default:
	// none.
	Prefix string

	// TellDeletions has the server report each exclusive lease, from its first
	// renewal on, when its key is deleted, evicted or overwritten, so that the
	// holder knows within a round trip or two, and not with its next renewal.
	// Each renewal then costs a message for each lease, and one read of up to 128
	// of them, on a connection of its own (CLIENT TRACKING, MGET). Nothing
	// relies on it: without the right to these commands, with RESP 2, and in a
	// Redis Cluster, the next renewal tells.
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
	// happen. Engines without it may use the same locks at the same time: what they
	// do is not written down. Default: nothing is.
	History bool
}

// New returns an engine on a client, which stays the caller's. The caller
// closes it after the engine. It does not block: an unreachable server and a
// client that is closed show with the first call.
//
// The client is what redis.NewClient, redis.NewFailoverClient or
// redis.NewClusterClient returns, or redis.NewUniversalClient when that is one of
// these. What cannot keep locks is ErrInvalid:
//
//   - nil, and clients of other types: the engine has to know how the servers
//     belong together.
//   - A Ring: which of its servers has a name depends on which of them the client
//     reaches, so two clients could both get a lock.
//   - A cluster client whose slots a function names, as that of
//     redis.NewFailoverClusterClient: the servers do not correct it when it asks
//     the wrong one, and it may read from replicas.
//   - A client without a ReadTimeout: a connection that goes silent would be
//     waited for without end, and so would be the next, until there is none left.
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
