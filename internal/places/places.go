// Package places keeps places in the queue: it refreshes the places of many waiters, in
// batches, and hands each the store's answer. The client library has a keeper
// for its waiters, and the server one for waiters over HTTP.
package places

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/schedule"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// The waiter TTL is how long a dead waiter may delay the queue, and how long a lease
	// lasts at first after a hand-over: as long as the TTL, within these bounds. A keeper
	// that has more than 1,666 waiters uses eachTTL for each of them, up to the TTL.
	// INVARIANT I7.
	ShortestTTL = 500 * time.Millisecond
	LongestTTL  = 5 * time.Second
	eachTTL     = refreshPart * (time.Second / 1000) // about 1,000 refreshes a second
)

// When places are refreshed, as parts of the waiter TTL.
const (
	refreshPart   = 3  // a place is refreshed after 1/3 of its TTL
	refreshJitter = 30 // less up to 1/30, so that not all come at once
	refreshRetry  = 10 // 1/10 after a refresh that failed, the next
	refreshJoin   = 10 // a place due within 1/10 joins a batch that goes out now

	// ExpirySlack is waited beyond the end of the lease in the way, which
	// stores report in whole milliseconds.
	ExpirySlack = 2 * time.Millisecond
	// LookAgain is the least time between two refreshes of one place that notices
	// have caused, and between any two attempts of one waiter. INVARIANT I7: no
	// waiter spins, whatever notices it receives.
	LookAgain = 10 * time.Millisecond

	// A foreign client sends no notice when it releases the lock. The first of
	// the queue looks for that every LookAgain while such clients come and go,
	// and less and less often while one stays; all of a keeper's together no
	// more than once in foreignShare.
	foreignLongest = 50 * time.Millisecond
	foreignShare   = 5 * time.Millisecond
)

// A Keeper refreshes the places of waiters, in batches. It has one timer, and a
// goroutine only while requests are under way. I is an instant, as its owner reads the
// clocks. Init comes first.
type Keeper[I any] struct {
	Owner[I]
	waiters atomic.Int64 // waiters that have requested a place, or are about to

	mu      sync.Mutex // guards the rest, and the fields of each place whose comments name it
	table   schedule.Timetable[*Place[I]]
	foreign int // places with a foreign client in the way
}

// An Owner is what a Keeper needs of its owner.
type Owner[I any] struct {
	Queuer driver.Queuer
	Router driver.Router                                               // nil if the engine has none
	Now    func() I                                                    // reads the clocks
	Spawn  func(send func(context.Context))                            // runs send on a goroutine of its own, under a context that ends with the owner
	Limit  func(context.Context) (context.Context, context.CancelFunc) // bounds one request
}

// A Place is the place of one waiter in the queue of a name, as its keeper knows it.
type Place[I any] struct {
	// Answers has the latest answer to a refresh, if it was not received.
	Answers chan Refresh[I]

	ttl time.Duration // of the lease

	// The mutex of the Keeper guards the rest.
	req     driver.RefreshRequest // WaiterTTL is that of the last request that got an answer
	entry   schedule.Entry[*Place[I]]
	left    bool      // its waiter is gone
	sent    time.Time // when the last refresh was sent
	hurried time.Time // when the last refresh because of a notice was due
	urgent  bool      // its refresh is due sooner than the waiter TTL requires: something may have happened
	open    time.Time // when the first unanswered refresh was sent; zero if all were answered

	// While a foreign client is in the way of the first of the queue; else zero.
	foreign     time.Duration // the pause before the last refresh
	foreignEnds time.Time     // when its lock would have ended, as of that refresh
}

func (p *Place[I]) name() string { return p.req.Name }

// A Refresh is one request for a place and its answer. As refreshes do no harm, an
// error that is not definite has become driver.ErrUnavailable.
type Refresh[I any] struct {
	Sent      I
	WaiterTTL time.Duration
	Reply     *driver.RefreshReply
}

// Init makes a keeper without places.
func (k *Keeper[I]) Init(owner Owner[I]) {
	k.Owner = owner
	k.table.Init(k.tick)
}

// Enter counts one waiter more, which must Exit, and returns the waiter TTL for a lease of
// ttl.
func (k *Keeper[I]) Enter(ttl time.Duration) time.Duration {
	k.waiters.Add(1)
	return k.waiterTTL(ttl)
}

// waiterTTL returns the waiter TTL for a lease of ttl, with as many waiters as there are now.
func (k *Keeper[I]) waiterTTL(ttl time.Duration) time.Duration {
	return min(max(ttl, ShortestTTL), max(LongestTTL, time.Duration(k.waiters.Load())*eachTTL))
}

// Exit takes back one call of Enter.
func (k *Keeper[I]) Exit() { k.waiters.Add(-1) }

// Join starts to refresh a place for a lease of ttl; blocker is the store's answer about it.
func (k *Keeper[I]) Join(req driver.RefreshRequest, ttl time.Duration, blocker *driver.Blocker) *Place[I] {
	now := time.Now()
	p := &Place[I]{ttl: ttl, req: req, sent: now, Answers: make(chan Refresh[I], 1)}
	p.entry.Item = p
	k.mu.Lock()
	defer k.mu.Unlock()
	k.putLocked(p, now.Add(k.nextLookLocked(p, *blocker)))
	return p
}

// Leave stops refreshing a place. An answer under way is dropped.
func (k *Keeper[I]) Leave(p *Place[I]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table.Remove(&p.entry)
	p.left = true
	k.foreignLocked(p, driver.Blocker{})
}

// Unanswered returns when the first unanswered refresh was sent; zero if there is none.
func (k *Keeper[I]) Unanswered(p *Place[I]) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.open
}

// Hurry refreshes a place, and so finds out its state, as soon as possible.
func (k *Keeper[I]) Hurry(p *Place[I]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := p.hurried.Add(LookAgain)
	if now := time.Now(); at.Before(now) {
		at = now
	}
	if at.Before(k.table.At(&p.entry)) {
		p.hurried, p.urgent = at, true
		k.putLocked(p, at)
	}
}

// putLocked moves p to the time at, unless its waiter has left.
func (k *Keeper[I]) putLocked(p *Place[I], at time.Time) {
	if !p.left {
		k.table.Put(&p.entry, at)
	}
}

// tick runs on the timer's goroutine when the first place is due.
func (k *Keeper[I]) tick() {
	for _, batch := range k.due(time.Now()) {
		k.Spawn(func(ctx context.Context) { k.refresh(ctx, batch) })
	}
}

// due returns the places to refresh now, in batches. One that gets no answer is due again
// after the usual time.
func (k *Keeper[I]) due(now time.Time) [][]*Place[I] {
	batches := schedule.NewBatches(k.Router, driver.MaxBatch, (*Place[I]).name)
	k.mu.Lock()
	defer k.mu.Unlock()
	urgent := false // no other place joins, which could delay the answer
	k.table.Visit(func(p *Place[I]) (next time.Time, wait bool) {
		limit := now
		if batches.Room() && !urgent {
			limit = now.Add(p.req.WaiterTTL / refreshJoin)
		}
		if k.table.At(&p.entry).After(limit) {
			return time.Time{}, true
		}
		urgent = urgent || p.urgent
		p.sent, p.urgent = now, false
		if p.open.IsZero() {
			p.open = now
		}
		batches.Add(p)
		return now.Add(p.req.WaiterTTL / refreshPart), false
	})
	return batches.All()
}

// refresh sends one batch and hands out the answers. It runs on a goroutine of
// its own, started by tick, that ends with the request.
func (k *Keeper[I]) refresh(ctx context.Context, batch []*Place[I]) {
	ctx, cancel := k.Limit(ctx)
	defer cancel()
	reqs := k.requests(batch)
	// INVARIANT I3: the clock starts before the first byte is written.
	sent := k.Now()
	replies := k.Queuer.Refresh(ctx, reqs)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range batch {
		replies[i].Err = ask.Harmless(ctx, replies[i].Err)
		k.answerLocked(p, Refresh[I]{sent, reqs[i].WaiterTTL, &replies[i]})
	}
}

// requests returns the requests of a batch.
func (k *Keeper[I]) requests(batch []*Place[I]) []driver.RefreshRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	reqs := make([]driver.RefreshRequest, len(batch))
	for i, p := range batch {
		reqs[i] = p.req
		reqs[i].WaiterTTL = k.waiterTTL(p.ttl)
	}
	return reqs
}

// answerLocked passes an answer to the waiter of p, and schedules the next refresh.
func (k *Keeper[I]) answerLocked(p *Place[I], r Refresh[I]) {
	p.open = time.Time{}
	pause := p.req.WaiterTTL / refreshRetry
	if r.Reply.Err == nil {
		p.req.WaiterTTL = r.WaiterTTL
		pause = k.nextLookLocked(p, r.Reply.Blocker)
	}
	k.putLocked(p, time.Now().Add(pause))
	select {
	case <-p.Answers: // not received yet, and out of date
	default:
	}
	p.Answers <- r // only k.mu's owner sends: there is room
}

// nextLookLocked returns the time until the next refresh: a part of the waiter
// TTL or, for the first of the queue, until the lease in the way ends by itself
// or a foreign client may have released it. Later places do not look then: if
// the first is gone, their usual refresh finds out.
func (k *Keeper[I]) nextLookLocked(p *Place[I], w driver.Blocker) time.Duration {
	usual := p.req.WaiterTTL/refreshPart - rand.N(p.req.WaiterTTL/refreshJitter)
	pause := usual
	if w.Place == 1 && w.ExpiresIn != lockinfo.Never {
		pause = min(pause, max(w.ExpiresIn, LookAgain)+ExpirySlack)
	}
	k.foreignLocked(p, w)
	if p.foreign > 0 {
		pause = min(pause, max(p.foreign, time.Duration(k.foreign)*foreignShare))
	}
	p.urgent = pause < usual
	return pause
}

// foreignLocked notes whether a foreign client is in the way of p.
func (k *Keeper[I]) foreignLocked(p *Place[I], w driver.Blocker) {
	was := p.foreign
	ends := time.Now().Add(w.ExpiresIn)
	switch {
	case w.Place != 1 || !w.Foreign || p.left:
		p.foreign = 0
	case was == 0 || ends.Sub(p.foreignEnds) > LookAgain/2 && w.ExpiresIn != lockinfo.Never:
		p.foreign = LookAgain // another one, or one that has renewed its lock
	default:
		p.foreign = min(was*3/2, foreignLongest)
	}
	p.foreignEnds = ends
	if (was > 0) != (p.foreign > 0) {
		k.foreign += map[bool]int{true: 1, false: -1}[p.foreign > 0]
	}
}
