package holdfast

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/schedule"
)

// When places are refreshed, as parts of the waiter TTL.
const (
	refreshPart   = 3  // a place is refreshed when 1/3 of its TTL is over
	refreshJitter = 30 // less up to 1/30, so that not all come at once
	refreshRetry  = 10 // 1/10 after a refresh that failed, the next
	refreshJoin   = 10 // a place due within 1/10 joins a batch that goes out now

	// expirySlack is waited beyond the end of the lease in the way, which
	// stores report in whole milliseconds.
	expirySlack = 2 * time.Millisecond
	// lookAgain is the least time between two refreshes of one place that notices
	// have led to, and between any two attempts of one waiter. INVARIANT I7: no
	// waiter spins, whatever it is told.
	lookAgain = 10 * time.Millisecond

	// A foreign client tells nobody when it gives the lock back. The first of
	// the queue looks for that every lookAgain while such clients come and go,
	// and less and less often while one stays; all of a client's together no
	// more than once in foreignShare.
	foreignLongest = 50 * time.Millisecond
	foreignShare   = 5 * time.Millisecond
)

// A placeKeeper refreshes the places of one client's waiters, in batches. It has
// one timer, and a goroutine only while requests are under way.
type placeKeeper struct {
	client  *Client
	waiters atomic.Int64 // those that have asked for a place, or are about to

	mu      sync.Mutex // guards the rest, and of every place what says so
	table   schedule.Timetable[*place]
	foreign int // places with a foreign client in the way
}

// A place is one waiter's in the queue of a name, as the client knows it.
type place struct {
	req     driver.RefreshRequest
	answers chan refresh // holds the latest

	// The mutex of the placeKeeper guards the rest.
	entry   schedule.Entry
	left    bool      // its waiter is gone
	sent    time.Time // when the last refresh was sent
	hurried time.Time // when the last refresh was due that a notice led to
	urgent  bool      // it is due sooner than its waiter TTL needs: something may have happened
	open    time.Time // when the first was sent that was not answered; zero if all were

	// While a foreign client is in the way of the first of the queue; else zero.
	foreign     time.Duration // the pause before the last refresh
	foreignEnds time.Time     // when its lock would have ended, as of that refresh
}

func (p *place) name() string { return p.req.Name }

// A refresh is one request for a place and its answer.
type refresh struct {
	sent  instant
	reply driver.RefreshReply
}

func (k *placeKeeper) init(c *Client) {
	k.client = c
	k.table.Init(func(p *place) *schedule.Entry { return &p.entry }, k.tick)
}

// join starts refreshing a place that the store has given; blocker is what
// the store said about it.
func (k *placeKeeper) join(req driver.RefreshRequest, blocker driver.Blocker) *place {
	now := time.Now()
	p := &place{req: req, sent: now, answers: make(chan refresh, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.putLocked(p, now.Add(k.nextLookLocked(p, blocker)))
	return p
}

// leave stops refreshing a place. An answer under way is dropped.
func (k *placeKeeper) leave(p *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table.Remove(p)
	p.left = true
	k.foreignLocked(p, driver.Blocker{})
}

// unanswered returns when the first refresh was sent that has no answer; zero if
// all have.
func (k *placeKeeper) unanswered(p *place) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.open
}

// hurry refreshes a place, and so finds out what became of it, as soon as possible.
func (k *placeKeeper) hurry(p *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := p.hurried.Add(lookAgain)
	if now := time.Now(); at.Before(now) {
		at = now
	}
	if at.Before(p.entry.At()) {
		p.hurried, p.urgent = at, true
		k.putLocked(p, at)
	}
}

// putLocked moves p to the time at, unless its waiter has left.
func (k *placeKeeper) putLocked(p *place, at time.Time) {
	if !p.left {
		k.table.Put(p, at)
	}
}

// tick runs on the timer's goroutine when the first place is due.
func (k *placeKeeper) tick() {
	for _, batch := range k.due(time.Now()) {
		k.client.spawn(func(ctx context.Context) { k.refresh(ctx, batch) })
	}
}

// due returns the places to refresh now, in batches. One that gets no answer is due again
// after the usual time.
func (k *placeKeeper) due(now time.Time) [][]*place {
	batches := schedule.NewBatches(k.client.features.Router, driver.MaxBatch, (*place).name)
	k.mu.Lock()
	defer k.mu.Unlock()
	urgent := false // nobody joins who would hold up the answer
	k.table.Visit(func(p *place) (next time.Time, wait bool) {
		limit := now
		if batches.Room() && !urgent {
			limit = now.Add(p.req.WaiterTTL / refreshJoin)
		}
		if p.entry.At().After(limit) {
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
func (k *placeKeeper) refresh(ctx context.Context, batch []*place) {
	ctx, cancel := k.client.requestContext(ctx)
	defer cancel()
	reqs := make([]driver.RefreshRequest, len(batch))
	for i, p := range batch {
		reqs[i] = p.req
	}
	// INVARIANT I3: the clock starts before the first byte is written.
	sent := k.client.now()
	replies := k.client.features.Queuer.Refresh(ctx, reqs)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range batch {
		replies[i].Err = ask.Harmless(ctx, replies[i].Err)
		k.answerLocked(p, refresh{sent, replies[i]})
	}
}

// answerLocked tells p's waiter of an answer and sets the time of the next
// refresh.
func (k *placeKeeper) answerLocked(p *place, r refresh) {
	p.open = time.Time{}
	pause := p.req.WaiterTTL / refreshRetry
	if r.reply.Err == nil {
		pause = k.nextLookLocked(p, r.reply.Blocker)
	}
	k.putLocked(p, time.Now().Add(pause))
	select {
	case <-p.answers: // not received yet, and out of date
	default:
	}
	p.answers <- r // only k.mu's owner sends: there is room
}

// nextLookLocked returns the time until the next refresh: a part of the waiter
// TTL or, for the first of the queue, until the lease in the way ends by itself
// or a foreign client may have given it back. Those behind it do not ask then: if
// the first is gone, their usual refresh finds out.
func (k *placeKeeper) nextLookLocked(p *place, w driver.Blocker) time.Duration {
	usual := p.req.WaiterTTL/refreshPart - rand.N(p.req.WaiterTTL/refreshJitter)
	pause := usual
	if w.Place == 1 && w.ExpiresIn != driver.Never {
		pause = min(pause, max(w.ExpiresIn, lookAgain)+expirySlack)
	}
	k.foreignLocked(p, w)
	if p.foreign > 0 {
		pause = min(pause, max(p.foreign, time.Duration(k.foreign)*foreignShare))
	}
	p.urgent = pause < usual
	return pause
}

// foreignLocked notes whether a foreign client is in the way of p.
func (k *placeKeeper) foreignLocked(p *place, w driver.Blocker) {
	was := p.foreign
	ends := time.Now().Add(w.ExpiresIn)
	switch {
	case w.Place != 1 || !w.Foreign || p.left:
		p.foreign = 0
	case was == 0 || ends.Sub(p.foreignEnds) > lookAgain/2 && w.ExpiresIn != driver.Never:
		p.foreign = lookAgain // another one, or one that has renewed its lock
	default:
		p.foreign = min(was*3/2, foreignLongest)
	}
	p.foreignEnds = ends
	if (was > 0) != (p.foreign > 0) {
		k.foreign += map[bool]int{true: 1, false: -1}[p.foreign > 0]
	}
}
