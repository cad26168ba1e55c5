package redislock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use
// Open or New to make one.
type Engine struct{ *hidden }

// hidden is doctor.Engine under a name whose methods go doc does not list, so that go doc shows
// only what programs call.
type hidden = doctor.Engine

// Close ends the engine. It does not close a client that was passed to New. Requests in progress
// fail.
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

	// Database is the number of the database that the client uses. The names of channels contain
	// it, because all databases of a server share their channels. A client does not tell its
	// database: if it has SelectDB, set Database. With a wrong number, waiters learn of a hand-over
	// only with their next refresh, holders learn of a break only with their next renewal, and a
	// feed has the events of the other database. Default: 0.
	Database int

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

// New returns an engine on an existing client, which the caller closes after the engine. The client
// may be of any kind that rueidis makes; one with replicas must not send scripts to them. If the
// client is nil or an option is bad, the error is ErrInvalid. New does not block: the first call
// reports an unreachable server. Once the client is closed the outcome of every call is unknown,
// because rueidis returns the same error for requests in flight.
//
// A client does not tell which database it uses: if it has SelectDB, set Options.Database.
//
// The client decides how soon it notices a dead connection. These options of rueidis matter to
// locks; Open sets them or does better:
//
//   - DisableRetry and AlwaysPipelining true, PipelineMultiplex -1.
//   - ConnWriteTimeout: a connection that has been silent for this long is
//     replaced. A third of the shortest TTL, less a second; the default is 10
//     s.
//   - Sentinel.Dialer, with a Timeout and a KeepAlive of a second or so. Dialer
//     does not set it. Without it the client does not notice that a sentinel's
//     machine has vanished, and misses the failover.
//   - ClusterOption.MaxMovedRedirections: 4 or so. Without it, nodes that
//     disagree redirect a request to each other until its context ends.
func New(client rueidis.Client, opts *Options) (*Engine, error) {
	return newEngine(callers(client), (*rediscore.Options)(opts))
}

func newEngine(conn rediscore.Conn, opts *rediscore.Options) (*Engine, error) {
	e, err := doctor.NewEngine(conn, opts, wayTo)
	if err != nil {
		return nil, err
	}
	return &Engine{e}, nil
}

// wayTo returns the doctor's way to the sentinels of a URL, and to the replicas behind them.
func wayTo(rawURL string) (way doctor.Way, err error) {
	if rawURL == "" {
		return way, nil
	}
	opts, _, err := parseURL(rawURL)
	if err != nil {
		return way, err
	}
	return doctor.Way{
		Sentinels: opts.InitAddress, Master: opts.Sentinel.MasterSet,
		Dial: func(ctx context.Context, addr string, sentinel bool) (rediscore.Conn, error) {
			return dialOne(ctx, opts, addr, sentinel)
		},
	}, nil
}
