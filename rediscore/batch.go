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
	// mostCalls bounds the calls of a route in flight: the server runs one while
	// another is on the network.
	mostCalls = 2
	// mostRequests bounds a batch, and thereby the server's time for it: some 0.2 ms.
	mostRequests = 64
	// A call that takes longer than slowCall does not count as one of mostCalls. Its
	// connection may be dead, and the next call may get a new one.
	slowCall = 100 * time.Millisecond
)

// A batcher sends the requests of one plain script, many in a call (group commit).
// Requests are never delayed to fill a batch. Those that arrive while enough calls are in
// flight join the next one.
type batcher struct {
	store  *Store
	script *lua.Script
	once   []string                                 // arguments of the whole call
	add    func(args []string, r *request) []string // adds the arguments of one request

	mu     sync.Mutex // guards the queues and all that they hold
	queues map[uint32]*routeQueue

	requests, flushers sync.Pool // free ones
}

func newBatcher(s *Store, script *lua.Script, add func([]string, *request) []string, once ...string) *batcher {
	return &batcher{store: s, script: script, once: once, add: add, queues: map[uint32]*routeQueue{}}
}

// A routeQueue has the requests of one route. INVARIANT I9: a call that hangs delays no
// other route.
type routeQueue struct {
	calls   int
	latest  time.Time // start of the latest call
	watched bool      // the timer runs
	timer   *time.Timer
	pending []*request // in the order of their arrival
}

// A request is about one lease. The caller may reuse an answered request, and must
// abandon one without an answer.
type request struct {
	name    string
	id      lockinfo.LeaseID
	ttl     string
	holder  string
	answers chan result // holds one
	timer   *time.Timer // for the time limit; nil until one was needed
}

// A result is the reply of a plain script to one request: 0 if the request is not plain,
// and changed nothing.
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
	r.name, r.id = name, id
	return r
}

// do sends a request and returns the reply. It returns an error as soon as ctx or the
// engine ends. Then a pending request is never sent, and the outcome of one in flight is
// unknown.
//
// INVARIANT I3: the deadline counts from before do is called, and includes the time in
// the queue.
func (f *batcher) do(ctx context.Context, r *request) (int64, error) {
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
	case <-late:
		cause = noAnswer(ctx)
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

// await returns channels that signal the end of ctx; one of the two may be nil. Nearly
// all requests have a time limit of our own: r's timer costs less than a context.
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

// enqueue makes r pending. If a call may start now, it returns the flusher for that.
func (f *batcher) enqueue(r *request) *flusher {
	route := f.store.Route(r.name)
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.queues[route]
	if c == nil {
		c = &routeQueue{}
		f.queues[route] = c
	}
	c.pending = append(c.pending, r)
	return f.flushLocked(route, c)
}

// flushLocked returns a flusher with the next batch, or nil if enough calls are in flight.
// Then it runs again when those are slow. INVARIANT I9: requests get past a call that
// hangs even if no further request arrives.
func (f *batcher) flushLocked(route uint32, c *routeQueue) *flusher {
	if c.calls >= mostCalls {
		if wait := slowCall - time.Since(c.latest); wait > 0 {
			f.watchLocked(route, c, wait)
			return nil
		}
	}
	t, ok := f.flushers.Get().(*flusher)
	if !ok {
		t = &flusher{batcher: f}
	}
	t.route, t.queue = route, c
	c.calls++
	t.takeLocked()
	if len(c.pending) > 0 {
		f.watchLocked(route, c, slowCall)
	}
	return t
}

// watchLocked has look run after a wait, unless it will run sooner.
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

// look sends what is still pending in a further call if the calls in flight are slow.
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
	if c := f.queues[f.store.Route(r.name)]; c != nil {
		c.pending = slices.DeleteFunc(c.pending, func(other *request) bool { return other == r })
	}
}

// A flusher is a job of the workers. It sends one batch of a queue after the other until
// the queue is empty. The store's life bounds it, and no caller's context: a caller that
// gives up must not fail the others.
type flusher struct {
	batcher *batcher
	route   uint32
	queue   *routeQueue

	began      time.Time  // start of the call
	requests   []*request // the batch
	keys, args []string
	results    []int64
}

func (t *flusher) do() {
	for more := true; more; {
		more = t.answer(t.send())
	}
	t.queue = nil
	t.batcher.flushers.Put(t)
}

// takeLocked takes the batch: the requests that have been pending for longest.
func (t *flusher) takeLocked() {
	t.began = time.Now()
	t.queue.latest = t.began
	n := min(len(t.queue.pending), mostRequests)
	t.requests = append(t.requests, t.queue.pending[:n]...)
	t.queue.pending = slices.Delete(t.queue.pending, 0, n)
}

// answer answers the batch, and reports whether it has taken another one.
func (t *flusher) answer(err error) (more bool) {
	for i, r := range t.requests {
		v := result{err: err}
		if err == nil {
			v.n = t.results[i]
		}
		t.requests[i] = nil
		r.answers <- v
	}
	t.requests = t.requests[:0]
	f, c := t.batcher, t.queue
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(c.pending) > 0 && f.store.life.Err() == nil && (c.calls <= mostCalls || time.Since(t.began) < slowCall) {
		t.takeLocked()
		return true
	}
	if c.calls--; c.calls == 0 && f.store.cluster { // other stores have one queue
		delete(f.queues, t.route)
	}
	return false
}

// send sends the batch in one call.
func (t *flusher) send() (err error) {
	s, script := t.batcher.store, t.batcher.script
	t.args = append(t.args, t.batcher.once...)
	for _, r := range t.requests {
		t.keys = s.keys.Append(t.keys, script.EachKeys, r.name, r.id)
		t.args = t.batcher.add(t.args, r)
	}
	t.results, err = evalInts(s.life, s.conn, script, t.keys, t.args, t.results[:0])
	if err == nil && len(t.results) != len(t.requests) {
		err = form.Malformed("a plain request", t.results)
	}
	clear(t.keys)
	clear(t.args)
	t.keys, t.args = t.keys[:0], t.args[:0]
	return err
}
