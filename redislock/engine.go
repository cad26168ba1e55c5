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

// hidden is doctor.Engine by a name under which go doc lists none of its methods, so that
// it shows what programs call.
type hidden = doctor.Engine

// Close ends the engine. A client that was given to New stays open. Requests that are under way
// fail.
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

	// Database is the number of the database that the client uses, which is in the
	// names of channels: a server has them in common for all its databases. A client
	// does not tell which it is: if it has SelectDB, set Database. With a wrong number
	// waiters learn of a hand-over with their next refresh only, holders of a break
	// with their next renewal, and a feed has the events of that other database.
	// Default: 0.
	Database int

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

// New returns an engine on an existing client, which the caller closes after the engine. The client
// may be of any kind that rueidis makes; one with replicas must not send scripts to them. A nil
// client and a bad option are ErrInvalid. New does not block: the first call finds an unreachable
// server. Once the client is closed the outcome of every call is unknown: rueidis returns the same
// error for requests in flight.
//
// A client does not show which database it uses: if it has SelectDB, set
// Options.Database.
//
// The client decides how soon it notices a dead connection. These options of
// rueidis matter to locks, and Open sets them or does better:
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

// wayTo returns the way to the sentinels of a URL, and to the replicas behind them.
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
