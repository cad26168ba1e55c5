package rediscore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

const (
	// mostCalls bounds the calls of a route in flight. While the server runs one call, a second is
	// on the network, and the callers of a third read their replies.
	mostCalls = 3
	// mostRequests bounds a batch, and thereby the time that the server spends on it: about 0.2 ms,
	// or 0.6 ms if each request is for a different slot.
	mostRequests = 64
	// A call that takes longer than slowCall no longer counts toward mostCalls. Its connection may
	// be dead, and the next call may use a new one.
	slowCall = 100 * time.Millisecond
)

// A batcher sends the requests of one plain script, many in a call (group commit). It never delays
// a request to fill a batch. Requests that arrive while enough calls are in flight join the next
// call.
type batcher struct {
	store  *Store
	script *lua.Script
	once   []string                                 // arguments that a call has once
	add    func(args []string, r *request) []string // adds the arguments of one request

	*routeQueues
	requests, flushers sync.Pool // for reuse
}

// routeQueues holds the queues by route. In a Redis Cluster all batchers of an engine share one,
// because calls of several scripts go to a node in one write.
type routeQueues struct {
	mu     sync.Mutex // guards the map and the queues
	queues map[uint32]*routeQueue
}

func newBatcher(s *Store, script *lua.Script, add func([]string, *request) []string, once ...string) *batcher {
	return &batcher{store: s, script: script, once: once, add: add, routeQueues: &routeQueues{queues: map[uint32]*routeQueue{}}}
}

// A routeQueue holds the requests of one route. INVARIANT I9: a call that hangs does not delay
// other routes.
type routeQueue struct {
	calls   int
	latest  time.Time // start of the latest call
	watched bool      // the timer is running
	timer   *time.Timer
	pending []*request // in the order of their arrival
}

// A request is about one lease. The caller may reuse a request that has been answered, and must
// abandon any other.
type request struct {
	batcher *batcher
	name    string
	id      lockinfo.LeaseID
	ttl     string
	holder  string
	slot    uint32
	queue   *routeQueue
	answers chan result // holds one
	timer   *time.Timer // for the time limit; nil until one was needed
}

// A result is the reply of a plain script to one request. The reply is 0 if the request is not
// plain; the script then changed nothing.
type result struct {
	n   int64
	err error
}

// newRequest returns a request about a lease.
func (f *batcher) newRequest(name string, id lockinfo.LeaseID) *request {
	r, ok := f.requests.Get().(*request)
	if !ok {
		r = &request{answers: make(chan result, 1)}
	}
	r.batcher, r.name, r.id = f, name, id
	return r
}

// do sends a request and returns the reply. It returns an error as soon as ctx or the engine ends.
// A request that is still pending is then never sent; the outcome of one in flight is unknown.
//
// INVARIANT I3: the deadline counts from before do is called, and includes the time in
// the queue.
func (f *batcher) do(ctx context.Context, r *request) (int64, error) {
	f.store.asking.Add(1)
	defer f.store.asking.Add(-1)
	if v, done := f.direct(ctx, r); done {
		return f.free(r, v)
	}
	if t := f.enqueue(r); t != nil {
		f.store.workers.run(t)
	}
	ended, late := r.await(ctx)
	var cause error
	select {
	case v := <-r.answers:
		return f.free(r, v)
	case <-ended:
		cause = noAnswer(ctx)
	case <-late: // the timer of ctx may fire later
		cause = ask.ErrNoAnswer
	case <-f.store.life.Done():
		cause = errClosing
	}
	f.dequeue(r)
	select {
	case v := <-r.answers: // both at once: an answer is better
		return f.free(r, v)
	default:
		return 0, cause
	}
}

// direct makes the call on the caller's goroutine. It reports false if the request still has to be
// sent.
func (f *batcher) direct(ctx context.Context, r *request) (v result, done bool) {
	lane := f.store.lane(ctx)
	if lane == nil {
		return v, false
	}
	t := f.newFlusher()
	t.requests = append(t.requests, r)
	t.fill(t.requests)
	_, sha := f.script.Source()
	t.results, done, v.err = lane.DirectInts(ctx, sha, t.keys, t.args, t.results[:0])
	done, v.err = f.store.madeDirect(ctx, done, v.err)
	switch {
	case !done || v.err != nil:
	case len(t.results) == 1:
		v.n = t.results[0]
	default:
		v.err = form.Malformed("a plain request", t.results)
	}
	t.clear()
	f.flushers.Put(t)
	return v, done
}

// newFlusher returns an empty flusher.
func (f *batcher) newFlusher() *flusher {
	t, ok := f.flushers.Get().(*flusher)
	if !ok {
		t = &flusher{batcher: f}
	}
	return t
}

// await returns channels that signal the end of ctx; one of the two may be nil. Nearly all requests
// have holdfast's own time limit, for which r's timer costs less than a context.
func (r *request) await(ctx context.Context) (ended <-chan struct{}, late <-chan time.Time) {
	caller, end, ok := ask.Parts(ctx)
	if !ok {
		return ctx.Done(), nil
	}
	if r.timer == nil {
		r.timer = time.NewTimer(time.Until(end))
	} else {
		r.timer.Reset(time.Until(end))
	}
	return caller.Done(), r.timer.C
}

// free returns an answered request to the pool.
func (f *batcher) free(r *request, v result) (int64, error) {
	if r.timer != nil {
		r.timer.Stop()
	}
	*r = request{answers: r.answers, timer: r.timer}
	f.requests.Put(r)
	return v.n, v.err
}

// enqueue makes r pending. If a call may start now, enqueue returns the flusher for it.
func (f *batcher) enqueue(r *request) *flusher {
	r.slot = f.store.Slot(r.name)
	route := f.store.nodes.known().route(r.slot)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queues) > 0 { // other calls are in flight
		f.store.nodes.want()
	}
	c := f.queues[route]
	if c == nil {
		c = &routeQueue{}
		f.queues[route] = c
	}
	r.queue = c
	c.pending = append(c.pending, r)
	return f.flushLocked(route, c)
}

// flushLocked returns a flusher with the next batch, or nil if enough calls are in flight. In that
// case it sets the timer to try again once those calls are slow. INVARIANT I9: requests get past a
// call that hangs even if no further request arrives.
func (f *batcher) flushLocked(route uint32, c *routeQueue) *flusher {
	if c.calls >= mostCalls {
		if wait := slowCall - time.Since(c.latest); wait > 0 {
			f.watchLocked(route, c, wait)
			return nil
		}
	}
	t := f.newFlusher()
	t.route, t.queue = route, c
	c.calls++
	t.takeLocked()
	if len(c.pending) > 0 {
		f.watchLocked(route, c, slowCall)
	}
	return t
}

// watchLocked schedules look after a wait, unless it is scheduled already.
func (f *batcher) watchLocked(route uint32, c *routeQueue, wait time.Duration) {
	switch {
	case c.watched:
		return
	case c.timer == nil:
		c.timer = time.AfterFunc(wait, func() { f.look(route, c) })
	default:
		c.timer.Reset(wait)
	}
	c.watched = true
}

// look sends the pending requests in a further call if the calls in flight are slow.
func (f *batcher) look(route uint32, c *routeQueue) {
	f.mu.Lock()
	c.watched = false
	var t *flusher
	if len(c.pending) > 0 && f.store.life.Err() == nil {
		t = f.flushLocked(route, c)
	}
	f.mu.Unlock()
	if t != nil {
		f.store.workers.run(t)
	}
}

// dequeue removes r if it is pending.
func (f *batcher) dequeue(r *request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := r.queue
	c.pending = slices.DeleteFunc(c.pending, func(other *request) bool { return other == r })
}
