package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use
// Open or New to make one.
type Engine struct {
	conn Conn
	settings
	invalid error // of the options; what every call answers
	scripts scripts
	inbox   *inbox
	tracker *tracker // nil unless deletions are told

	// life ends with Close. It is in a field because it is not a caller's
	// context: it bounds what runs on the engine's own behalf.
	life context.Context
	end  context.CancelFunc
}

var (
	_ driver.Engine      = (*Engine)(nil)
	_ driver.Queuer      = (*Engine)(nil)
	_ driver.Downgrader  = (*Engine)(nil)
	_ driver.AllAcquirer = (*Engine)(nil)
	_ driver.Recorder    = (*Engine)(nil)
	_ driver.Vault       = (*Engine)(nil)
	_ driver.Router      = (*Engine)(nil)
	_ driver.Lister      = (*Engine)(nil)
	_ driver.Breaker     = (*Engine)(nil)
	_ driver.LossTeller  = (*Engine)(nil)
)

// Options configure New. Nil is default; a zero field is default.
type Options struct {
	// NoForeignClients says that nobody but holdfast takes these locks. Then a
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

	// TellDeletions has the server tell of each exclusive lease, from its first
	// renewal on, when its key is deleted, evicted or overwritten, so that the
	// holder knows within a round trip or two, and not with its next renewal.
	// Each renewal of up to 128 leases then costs a message for each and one read
	// of them all, on a connection of its own (CLIENT TRACKING, MGET). Nothing
	// relies on it: without the right to these commands, with RESP 2, and in a
	// Redis Cluster, the next renewal tells.
	TellDeletions bool
}

// New returns an engine on an existing client, which the caller closes after
// the engine. The client may be of any kind that rueidis makes; one with
// replicas must not send scripts to them. It does not block: an unreachable
// server shows with the first call, and so does a bad option, which makes
// every call fail with ErrInvalid.
//
// How soon a dead connection is noticed is the client's business. These options
// of rueidis matter to locks, and Open sets them, or does better:
//
//   - DisableRetry and AlwaysPipelining true, PipelineMultiplex -1.
//   - ConnWriteTimeout: a connection that has been silent for so long is made
//     anew. A third of the shortest TTL, less a second; the default is 10 s.
//   - Sentinel.Dialer, with a Timeout and a KeepAlive of a second or so. It is
//     not taken from Dialer, and without it a sentinel whose machine vanishes is
//     never missed: the client does not hear of the failover.
//   - ClusterOption.MaxMovedRedirections: 4 or so. Without it nodes that
//     disagree send a request to and fro until its context ends.
func New(client rueidis.Client, opts *Options) *Engine {
	var o Options
	if opts != nil {
		o = *opts
	}
	keys, err := newKeyspace(o.Prefix)
	life, end := context.WithCancel(context.Background())
	e := newEngine(newConn(client, nil), settings{keys: keys, foreign: !o.NoForeignClients}, life, end)
	e.invalid = err
	e.tellDeletions(o.TellDeletions)
	return e
}

// settings are Options as the engine uses them.
type settings struct {
	keys    keyspace
	foreign bool // other clients may want the locks
}

func newEngine(conn Conn, set settings, life context.Context, end context.CancelFunc) *Engine {
	return &Engine{
		conn: conn, settings: set, scripts: newScripts(set.foreign),
		inbox: newInbox(conn, set.keys, life), life: life, end: end,
	}
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Replicas: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true, Routes: true, Diagnose: true,
	}
}

// closeLimit bounds Close. The client would say goodbye to each server, and
// wait for an answer for a second.
const closeLimit = 200 * time.Millisecond

// Close implements driver.Engine. A call that is under way returns at once,
// its outcome unknown. It asks the server nothing, and returns within a quarter
// of a second even if the server is silent.
func (e *Engine) Close() error {
	e.end()
	closed := make(chan struct{})
	go func() { // ends within about a second
		defer close(closed)
		e.conn.Close()
		e.inbox.wait()
		e.tracker.wait()
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
	return nil
}

// enter returns an error if the engine may not ask the store about name.
func (e *Engine) enter(ctx context.Context, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.life.Err() != nil:
		return driver.ErrClosed
	case e.invalid != nil:
		return e.invalid
	}
	return e.keys.check(name)
}

// errClosing: Close came before the answer.
var errClosing = errors.New("the engine was closed before the server answered")

// exec runs a script and returns its reply.
func (e *Engine) exec(ctx context.Context, script *script, keys, args []string) (any, error) {
	request := func() (any, error) { return script.run(ctx, e.conn, keys, args) }
	reply, err := e.ask(ctx, request)
	if errors.Is(err, ErrGivenUp) && e.scripts.mayRepeat(script) && ctx.Err() == nil {
		if again, failed := e.ask(ctx, request); failed == nil {
			return again, nil // the first one's outcome stays unknown otherwise
		}
	}
	return reply, err
}

// do sends a command that is no script.
func (e *Engine) do(ctx context.Context, c Command) (any, error) {
	return e.ask(ctx, func() (any, error) { return e.conn.Do(ctx, c) })
}

// An answer is what a request came to.
type answer struct {
	reply any
	err   error
}

// ask returns what request does, or an error as soon as ctx or the engine ends;
// the outcome is then unknown.
//
// The goroutine ends with the client's answer. It is needed because a client
// may not look at ctx while it waits for a connection that another call is
// making, nor while its queue is full behind a silent server.
func (e *Engine) ask(ctx context.Context, request func() (any, error)) (any, error) {
	answers := make(chan answer, 1)
	go func() {
		reply, err := request()
		answers <- answer{reply, err}
	}()
	var cause error
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
		cause = fmt.Errorf("no answer from the server: %w", ctx.Err())
	case <-e.life.Done():
		cause = errClosing
	}
	select {
	case a := <-answers: // both at once: an answer is better
		return a.reply, a.err
	default:
		return nil, cause
	}
}
