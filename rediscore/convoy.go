package rediscore

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

const (
	// mostCalls is how many calls of a convoy are under way at a time: one that
	// the server is at, and one that is on its way there or back.
	mostCalls = 2
	// mostRiders bounds a call, and so for how long it holds the server up: some
	// 0.2 ms.
	mostRiders = 64
	// slowCall is how long a call may take before another goes beside it,
	// although there are enough: its connection may be dead, and the next one a
	// new one.
	slowCall = 100 * time.Millisecond
)

// A fleet carries the requests of one plain script, many in a call. Nobody waits
// for company: what comes while enough calls are under way goes with the next.
type fleet struct {
	store  *Store
	script *lua.Script
	once   []string                               // arguments that are there once
	add    func(args []string, r *rider) []string // adds those for one rider

	mu      sync.Mutex // guards what is pending, and the convoys
	convoys map[uint32]*convoy

	riders, trips sync.Pool // that are free
}

func newFleet(s *Store, script *lua.Script, add func([]string, *rider) []string, once ...string) *fleet {
	return &fleet{store: s, script: script, once: once, add: add, convoys: map[uint32]*convoy{}}
}

// A convoy is what of a fleet goes by one route. INVARIANT I9: so what hangs
// delays no other route.
type convoy struct {
	calls       int
	latest      time.Time // when the latest call was begun
	first, last *rider    // pending, in the order in which they came
}

// A rider is one request. Whoever asks owns it again when it is answered, and
// leaves it behind otherwise.
type rider struct {
	name    string
	id      driver.LeaseID
	ttl     string
	holder  string
	answers chan verdict // holds the one that there is
	timer   *time.Timer  // of the request's limit; nil if there never was one

	convoy     *convoy // in which it is pending
	prev, next *rider
}

// A verdict is what a plain script says of one request: 0 that it is not plain,
// and nothing has changed.
type verdict struct {
	n   int64
	err error
}

// rider returns a request about a lease.
func (f *fleet) rider(name string, id driver.LeaseID) *rider {
	r, ok := f.riders.Get().(*rider)
	if !ok {
		r = &rider{answers: make(chan verdict, 1)}
	}
	r.name, r.id = name, id
	return r
}

// ask returns what the script says of a request, or an error as soon as ctx or
// the engine ends. A request that is still pending then is never sent; of one
// that is under way the outcome is unknown.
//
// INVARIANT I3: to be pending is a part of the request, whose deadline counts
// from before ask is called.
func (f *fleet) ask(ctx context.Context, r *rider) (int64, error) {
	f.join(r)
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
	f.leave(r)
	select {
	case v := <-r.answers: // both at once: an answer is better
		return f.free(r, v)
	default:
		return 0, cause
	}
}

// await returns what tells that ctx has ended; one of the two may be nil. Nearly all
// requests have a limit of our own: r's timer costs less than the context of each.
func (r *rider) await(ctx context.Context) (ended <-chan struct{}, late <-chan time.Time) {
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

// free gives an answered rider back.
func (f *fleet) free(r *rider, v verdict) (int64, error) {
	if r.timer != nil {
		r.timer.Stop()
	}
	*r = rider{answers: r.answers, timer: r.timer}
	f.riders.Put(r)
	return v.n, v.err
}

// join makes r pending, and sends it at once if there are not enough calls.
func (f *fleet) join(r *rider) {
	route := f.store.Route(r.name)
	f.mu.Lock()
	c := f.convoys[route]
	if c == nil {
		c = &convoy{}
		f.convoys[route] = c
	}
	c.push(r)
	if c.calls >= mostCalls && time.Since(c.latest) < slowCall {
		f.mu.Unlock()
		return
	}
	t, ok := f.trips.Get().(*trip)
	if !ok {
		t = &trip{fleet: f}
	}
	t.route, t.convoy = route, c
	c.calls++
	t.loadLocked()
	f.mu.Unlock()
	f.store.crew.run(t)
}

// leave takes r out if it is pending.
func (f *fleet) leave(r *rider) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.convoy != nil {
		r.convoy.remove(r)
	}
}

func (c *convoy) push(r *rider) {
	r.convoy, r.prev = c, c.last
	if c.last == nil {
		c.first = r
	} else {
		c.last.next = r
	}
	c.last = r
}

func (c *convoy) remove(r *rider) {
	if r.prev == nil {
		c.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		c.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.convoy, r.prev, r.next = nil, nil, nil
}

// A trip is a job of the crew: one call of a convoy after the other, until
// nobody is pending. It is bounded by the store's life and by no caller's
// context: whose caller has left must not spoil it for the others.
type trip struct {
	fleet  *fleet
	route  uint32
	convoy *convoy

	began      time.Time // the call
	riders     []*rider  // of the call
	keys, args []string
	verdicts   []int64
}

func (t *trip) do() {
	for t.call() {
	}
	t.convoy = nil
	t.fleet.trips.Put(t)
}

// loadLocked takes those on who have been pending for longest.
func (t *trip) loadLocked() {
	t.began = time.Now()
	t.convoy.latest = t.began
	for r := t.convoy.first; r != nil && len(t.riders) < mostRiders; r = t.convoy.first {
		t.convoy.remove(r)
		t.riders = append(t.riders, r)
	}
}

// call sends one call, and reports whether it has taken on others for the next.
func (t *trip) call() bool {
	err := t.send()
	for i, r := range t.riders {
		v := verdict{err: err}
		if err == nil {
			v.n = t.verdicts[i]
		}
		t.riders[i] = nil
		r.answers <- v
	}
	t.riders = t.riders[:0]
	f, c := t.fleet, t.convoy
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.first != nil && f.store.life.Err() == nil && (c.calls <= mostCalls || time.Since(t.began) < slowCall) {
		t.loadLocked()
		return true
	}
	if c.calls--; c.calls == 0 && f.store.cluster { // elsewhere there is one
		delete(f.convoys, t.route)
	}
	return false
}

// send asks the store.
func (t *trip) send() (err error) {
	s, script := t.fleet.store, t.fleet.script
	t.args = append(t.args, t.fleet.once...)
	for _, r := range t.riders {
		t.keys = s.keys.Append(t.keys, script.EachKeys, r.name, r.id)
		t.args = t.fleet.add(t.args, r)
	}
	t.verdicts, err = evalInts(s.life, s.conn, script, t.keys, t.args, t.verdicts[:0])
	if err == nil && len(t.verdicts) != len(t.riders) {
		err = form.Malformed("a plain request", t.verdicts)
	}
	clear(t.keys)
	clear(t.args)
	t.keys, t.args = t.keys[:0], t.args[:0]
	return err
}
