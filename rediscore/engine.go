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

// hidden is engine by a name under which go doc lists none of its methods, so that it
// shows what programs call.
type hidden = engine

// An engine is what an Engine does.
type engine struct {
	store   *Store
	foreign bool     // other clients may want the locks
	memory  string   // Options.TokenMemory in ms, as scripts want it
	feed    string   // where events are published; empty without history
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
	// names of channels: a server has them in common for all its databases. Only
	// redislock.New needs it, for a client with SelectDB; whatever else makes
	// an engine knows. With a wrong number waiters learn of a hand-over with their
	// next refresh only, holders of a break with their next renewal, and a feed has
	// the events of that other database. Default: 0.
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
	// 1 minute to 365 days. The token of a lease that lasts for more than half of this
	// is remembered for up to half of it after the lease ends. Tokens grow even if the server's clock goes back, or that
	// of a replica which takes over is behind, by as much as this in all (INVARIANT
	// I2). A name costs some 200 bytes of the server's memory meanwhile: with
	// millions of names that are used once, an hour may do. All clients of a store should
	// use the same value, because the last to grant a lock decides. Members of a quorum and
	// guards ignore it. Default: driver.TokenMemory, 24 hours.
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

// space returns the names of the keys, or an error if an option is out of range.
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

// New returns an engine on a connection, which Close closes. A bad option is
// driver.ErrInvalid, and so is nil for the connection. New does not block: an unreachable
// server shows with the first call.
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
	if o.TellDeletions && !store.cluster { // there it would take a connection to each node
		e.tracker = newTracker(conn, space, life, &store.inbox.losses)
	}
	return &Engine{e}, nil
}

// InRedis returns the engine itself: by this method packages member and redisfence find
// it in the engines that embed it.
func (e *Engine) InRedis() *Engine { return e }

// Store returns what other packages share with the engine.
func (e *Engine) Store() *Store { return e.store }

// Capabilities implements driver.Engine. A package that adds doctor.Diagnose to the
// engine adds its flag.
func (e *engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Replicas: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true, Routes: true,
		History:   e.events != nil,
		MaxExtend: mostPlain,
	}
}

// closeLimit bounds Close. The client would send a farewell to each server, and
// wait for an answer for a second.
const closeLimit = 200 * time.Millisecond

// Close ends the engine. A call that is under way returns at once, its outcome unknown.
// Close sends the server nothing, and returns within a quarter of a second even if the
// server is silent.
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
