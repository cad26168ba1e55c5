// Package places keeps places in the queue: it refreshes the places of many waiters, in
// batches, and passes the store's reply to each waiter. The client library has a keeper for its
// waiters, and the server has one for waiters over HTTP.
package places

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/schedule"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// The waiter TTL is how long a dead waiter may delay the queue, and how long a lease
	// lasts at first after a hand-over. It is the TTL of the lease, within these bounds. A
	// keeper with more than 1,666 waiters replaces LongestTTL by eachTTL times their number.
	// INVARIANT I7.
	ShortestTTL = 500 * time.Millisecond
	LongestTTL  = 5 * time.Second
	eachTTL     = 3 * time.Millisecond // at most 1,000 refreshes a second
)

// When places are refreshed, as parts of the waiter TTL.
const (
	refreshJitter = 30 // a place is refreshed earlier by up to 1/30, so that not all are refreshed at once
	refreshRetry  = 10 // after a failed refresh, the next follows in 1/10
	refreshJoin   = 10 // a place that is due within 1/10 joins a batch that is sent now

	// ExpirySlack is how long to wait beyond the end of the lease in the way, because stores
	// report that end in whole milliseconds.
	ExpirySlack = 2 * time.Millisecond
	// LookAgain is the least time between two refreshes of one place that notices
	// have caused, and between any two attempts of one waiter. INVARIANT I7: no
	// waiter spins, whatever notices it receives.
	LookAgain = 10 * time.Millisecond

	// A foreign client sends no notice when it releases the lock. So the first of the
	// queue refreshes its place every LookAgain while foreign clients come and go, and less
	// often while one of them keeps the lock, up to every foreignLongest. All such places of
	// a keeper together are refreshed at most once in foreignShare.
	foreignLongest = 50 * time.Millisecond
	foreignShare   = 5 * time.Millisecond
)

// refreshAfter returns after how long a place is refreshed: a third of a waiter TTL up to
// LongestTTL, and nearly two thirds of a much longer one. That leaves more than three seconds for
// repeats, and at least a third of the waiter TTL for a lease that was handed over.
func refreshAfter(waiterTTL time.Duration) time.Duration {
	return (2*waiterTTL - min(waiterTTL, LongestTTL)) / 3
}

// A Keeper refreshes the places of waiters, in batches. It has one timer, and runs goroutines
// only while requests are under way. I is an instant of the owner's clocks. Init must be called
// first.
type Keeper[I any] struct {
	Owner[I]
	waiters atomic.Int64 // how many waiters have requested a place, or are about to

	mu      sync.Mutex // guards the rest, and most fields of each Place
	table   schedule.Timetable[*Place[I]]
	foreign int // how many places have a foreign client in the way
}

// An Owner is what a Keeper needs from its owner.
type Owner[I any] struct {
	Queuer driver.Queuer
	Router driver.Router                                               // nil if the engine has none
	Now    func() I                                                    // reads the clocks
	Spawn  func(send func(context.Context))                            // runs send on a goroutine of its own, under a context that ends with the owner
	Limit  func(context.Context) (context.Context, context.CancelFunc) // bounds one request
}

// A Place is the place of one waiter in the queue of a name, as its keeper knows it.
type Place[I any] struct {
	// Answers delivers the replies to refreshes that show a change, or all of them if the waiter
	// wants that. It holds only the latest one. Quiet returns the latest of the others.
	Answers chan Refresh[I]

	ttl time.Duration // the TTL of the lease
	all bool          // Answers delivers all replies

	// The mutex of the Keeper guards the rest.
	req     driver.RefreshRequest // its WaiterTTL is from the last request that was answered
	entry   schedule.Entry[*Place[I]]
	left    bool      // Leave was called
	sent    time.Time // when the last refresh was sent
	hurried time.Time // when the last refresh because of a notice was due
	urgent  bool      // the refresh is due sooner than the waiter TTL requires: the place may have changed
	open    time.Time // when the first unanswered refresh was sent; zero if all were answered

	blocker driver.Blocker // from the last reply
	other   bool           // the last reply was not that the place still waits
	quiet   Refresh[I]     // the last reply without a change that the waiter has not received

	// Set while a foreign client is in the way of the first of the queue.
	foreign     time.Duration // the pause until the next refresh
	foreignEnds time.Time     // when the foreign lock ends, according to the last reply
}

func (p *Place[I]) name() string { return p.req.Name }

// A Refresh is one request for a place and its reply. An error that is not definite has become
// driver.ErrUnavailable, because a refresh is harmless.
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

// Enter counts one more waiter, and returns the waiter TTL for a lease of ttl. The waiter must
// call Exit.
func (k *Keeper[I]) Enter(ttl time.Duration) time.Duration {
	k.waiters.Add(1)
	return k.waiterTTL(ttl)
}

// waiterTTL returns the waiter TTL for a lease of ttl, with the present number of waiters.
func (k *Keeper[I]) waiterTTL(ttl time.Duration) time.Duration {
	return min(max(ttl, ShortestTTL), max(LongestTTL, time.Duration(k.waiters.Load())*eachTTL))
}

// Exit undoes one call of Enter.
func (k *Keeper[I]) Exit() { k.waiters.Add(-1) }

// Join starts to refresh a place for a lease of ttl. blocker is from the reply that gave the
// place. If all is set, Answers delivers all replies.
func (k *Keeper[I]) Join(req driver.RefreshRequest, ttl time.Duration, blocker *driver.Blocker, all bool) *Place[I] {
	now := time.Now()
	p := &Place[I]{ttl: ttl, all: all, req: req, sent: now, blocker: *blocker, Answers: make(chan Refresh[I], 1)}
	p.entry.Item = p
	k.mu.Lock()
	defer k.mu.Unlock()
	k.putLocked(p, now.Add(k.nextLookLocked(p, *blocker)))
	return p
}

// Leave stops refreshing a place.
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

// Quiet returns the last reply without a change, once. Its Reply is nil if there was none since.
func (k *Keeper[I]) Quiet(p *Place[I]) Refresh[I] {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := p.quiet
	p.quiet = Refresh[I]{}
	return r
}

// Hurry refreshes a place as soon as LookAgain allows, to learn its state.
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

// due returns the places to refresh now, in batches. A place whose refresh is not answered is due
// again after the usual time.
func (k *Keeper[I]) due(now time.Time) [][]*Place[I] {
	batches := schedule.NewBatches(k.Router, driver.MaxBatch, (*Place[I]).name)
	k.mu.Lock()
	defer k.mu.Unlock()
	urgent := false // if set, places that are not due do not join: they could delay the reply
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
		return now.Add(refreshAfter(p.req.WaiterTTL)), false
	})
	return batches.All()
}

// refresh sends one batch and passes the replies on. It runs on a goroutine of its own, which
// tick starts, and which ends with the request.
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

// answerLocked passes a reply to the waiter of p, and schedules the next refresh.
func (k *Keeper[I]) answerLocked(p *Place[I], r Refresh[I]) {
	p.open = time.Time{}
	pause := p.req.WaiterTTL / refreshRetry
	if r.Reply.Err == nil {
		p.req.WaiterTTL = r.WaiterTTL
		pause = k.nextLookLocked(p, r.Reply.Blocker)
	}
	k.putLocked(p, time.Now().Add(pause))
	deliver := p.changedLocked(r.Reply) || p.all
	select {
	case <-p.Answers: // drop an older reply that was not received
		deliver = true
	default:
	}
	if deliver {
		p.Answers <- r // there is room, because only the owner of k.mu sends
	} else {
		p.quiet = r
	}
}

// changedLocked reports whether a reply shows more than that the same lease is still in the way, and
// for how long. Only such a reply wakes the waiter: thousands of waiters cost little while nothing
// changes.
func (p *Place[I]) changedLocked(r *driver.RefreshReply) bool {
	other := p.other
	p.other = r.Err != nil || r.Outcome != driver.Held
	if p.other {
		return true
	}
	was, now := p.blocker, r.Blocker
	p.blocker = now
	return other || now.Place != was.Place || now.Queue != was.Queue || now.Released != was.Released || now.Foreign != was.Foreign ||
		now.Since < was.Since || !holders.Equal(now.Holder, was.Holder)
}

// nextLookLocked returns the time until the next refresh. It is a part of the waiter TTL. For the
// first of the queue it is less if the lease in the way expires earlier, or a foreign client may
// have released the lock. Later places need only the usual refresh, which also finds out if the
// first waiter is dead.
func (k *Keeper[I]) nextLookLocked(p *Place[I], w driver.Blocker) time.Duration {
	usual := refreshAfter(p.req.WaiterTTL) - rand.N(p.req.WaiterTTL/refreshJitter)
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
		p.foreign = LookAgain // another foreign client, or the same one has renewed its lock
	default:
		p.foreign = min(was*3/2, foreignLongest)
	}
	p.foreignEnds = ends
	if (was > 0) != (p.foreign > 0) {
		k.foreign += map[bool]int{true: 1, false: -1}[p.foreign > 0]
	}
}
