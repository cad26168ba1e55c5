package rediscore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/whole"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// An Engine keeps locks in one Redis, Valkey, or Redis Cluster. Use New to make
// one.
type Engine struct{ *hidden }

// hidden is engine under a name whose methods go doc does not list, so that go doc shows only what
// programs call.
type hidden = engine

// An engine is the implementation of an Engine.
type engine struct {
	store   *Store
	foreign bool     // clients other than holdfast may want the locks
	memory  string   // Options.TokenMemory in ms, as an argument for scripts
	feed    string   // prefix of the channels of events; empty without history
	shared  []string // see serving
	scripts lua.Engine
	plain   *plain
	tracker *tracker // nil without TellDeletions
	events  *events  // nil unless history is written
	end     context.CancelFunc
}

var (
	_ whole.Engine  = (*Engine)(nil)
	_ driver.Router = (*Engine)(nil)
)

// Options configure New. Nil is default; a zero field is default.
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
	// it, because all databases of a server share their channels. Only redislock.New needs it, for
	// a client with SelectDB; other constructors know it. With a wrong number, waiters learn of a
	// hand-over only with their next refresh, holders learn of a break only with their next
	// renewal, and a feed has the events of the other database. Default: 0.
	Database int

	// TellDeletions has the server report when the key of an exclusive lease is deleted, evicted or
	// overwritten, from the first renewal on. The holder then learns of the loss within a round
	// trip or two, before its next renewal. Each renewal then costs a message for each lease, and
	// one read of up to 128 of them, on a separate connection (CLIENT TRACKING, MGET). Nothing
	// relies on it: without the right to these commands, with RESP 2, and in a Redis Cluster, the
	// next renewal finds the loss.
	TellDeletions bool

	// TokenMemory is how long the server remembers the last token of an unused name: 1 minute to
	// 365 days, counted from the token, read as microseconds since 1970. If a lease lasts for more
	// than half of this, its token is remembered for up to half of it after the lease ends. Tokens
	// grow even if the server's clock goes back, or the clock of a replica that takes over is
	// behind, by up to this much in total (INVARIANT I2). Meanwhile a name uses about 200 bytes of
	// the server's memory: with millions of names that are used once, an hour may do. All clients
	// of a store should use the same value, because the last to grant a lock decides. Members of a
	// quorum and guards ignore it. Default: driver.TokenMemory, 24 hours.
	TokenMemory time.Duration

	// History keeps the latest events of each name, and publishes them as they
	// happen; see driver.Historian. Engines without it may use the same locks, but
	// record nothing. Default: off.
	History bool
}

// The limits of Options.TokenMemory.
const (
	minTokenMemory = time.Minute
	maxTokenMemory = 365 * 24 * time.Hour
)

// Check returns an error that wraps driver.ErrInvalid if an option is out of range, as
// New does.
func (o *Options) Check() error {
	_, err := o.space()
	return err
}

// space returns the key space of the options, or an error if an option is out of range.
func (o *Options) space() (keys.Space, error) {
	if m := o.TokenMemory; m != 0 && (m < minTokenMemory || m > maxTokenMemory) {
		return keys.Space{}, fmt.Errorf("%w TokenMemory %s: want %s to %s, or zero for %s",
			driver.ErrInvalid, m, minTokenMemory, maxTokenMemory, driver.TokenMemory)
	}
	if o.Database < 0 {
		return keys.Space{}, fmt.Errorf("%w Database %d: want the number of the client's database", driver.ErrInvalid, o.Database)
	}
	space, err := keys.New(o.Prefix)
	space.Database = o.Database
	return space, err
}

// New returns an engine on a connection, which Close closes. If an option is out of range or the
// connection is nil, the error wraps driver.ErrInvalid. New does not block: the first call reports
// an unreachable server.
func New(conn Conn, opts *Options) (*Engine, error) {
	o := cmp.Or(opts, &Options{})
	if conn == nil {
		return nil, fmt.Errorf("%w client: it is nil", driver.ErrInvalid)
	}
	space, err := o.space()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	direct, _ := conn.(Direct)
	store := &Store{
		conn: conn, direct: direct, cluster: conn.Mode() == InCluster, keys: space,
		inbox: newInbox(conn, space, life), workers: newWorkers(life, mostParked), life: life,
	}
	if store.cluster {
		store.nodes = &nodes{conn: conn, life: life}
	}
	store.listen = store.inbox.listen
	scripts := lua.ForEngine(lua.Options{History: o.History, Cluster: store.cluster})
	memory := cmp.Or(o.TokenMemory, driver.TokenMemory)
	e := &engine{store: store, foreign: !o.NoForeignClients, memory: form.MS(memory), scripts: scripts, end: end}
	if o.History {
		e.events, e.feed = newEvents(store), space.Inboxes()
	}
	e.shared = []string{e.memory, space.Inboxes(), form.Flag(e.foreign), e.feed}
	e.plain = newPlain(store, e.scripts, memory, e.feed)
	if o.TellDeletions && !store.cluster { // a cluster would need a tracking connection to each node
		e.tracker = newTracker(conn, space, life, &store.inbox.losses)
	}
	return &Engine{e}, nil
}

// InRedis returns the engine itself. Packages member and redisfence use it to find the engine in a
// type that embeds it.
func (e *Engine) InRedis() *Engine { return e }

// Store returns the part of the engine that other packages share.
func (e *Engine) Store() *Store { return e.store }

// Capabilities implements driver.Engine. A package that adds doctor.Diagnose to the engine adds the
// flag for it.
func (e *engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Replicas: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true, Routes: true,
		History:   e.events != nil,
		MaxExtend: mostPlain,
	}
}

// closeLimit bounds Close. A client may send each server a farewell and wait up to a second for the
// reply.
const closeLimit = 200 * time.Millisecond

// Close ends the engine. A call in progress returns at once with an unknown outcome. Close sends
// nothing to the server, and returns within a quarter of a second even if the server is silent.
func (e *Engine) Close() error { return e.hidden.Close() }

func (e *engine) Close() error {
	e.end()
	closed := make(chan struct{})
	go func() { // ends within about a second
		defer close(closed)
		e.store.conn.Close()
		e.store.inbox.wait()
		e.tracker.wait()
		e.events.wait()
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
	return nil
}
