package holdfast

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// When places are renewed, as parts of the waiter TTL.
const (
	refreshPart   = 3  // a place is renewed when 1/3 of its TTL is over
	refreshJitter = 30 // less up to 1/30, so that not all come at once
	refreshRetry  = 10 // 1/10 after a refresh that failed, the next
	refreshJoin   = 10 // a place due within 1/10 joins a batch that goes out now

	// expirySlack is waited beyond the end of the lease in the way, which
	// stores report in whole milliseconds.
	expirySlack = 2 * time.Millisecond
	// lookAgain is the least time between two refreshes of one place that news
	// leads to, and between any other two of them, whatever comes. INVARIANT
	// I7: no waiter spins.
	lookAgain = 10 * time.Millisecond

	// A foreign client tells nobody when it gives the lock back. The first of
	// the queue looks for that every lookAgain while such clients come and go,
	// and less and less often while one stays; all of a client's together no
	// more than once in foreignShare.
	foreignLongest = 50 * time.Millisecond
	foreignShare   = 5 * time.Millisecond
)

// An usher is the scheduler of one client's waiters: it renews their places in
// batches. It has one timer, and a goroutine only while requests are under
// way.
type usher struct {
	client *Client

	mu    sync.Mutex // guards the rest, and the slot and sent of every place
	table timetable[*place]
	timer *time.Timer

	foreign int // places with a foreign client in the way
}

// A place is one waiter's in the queue of a name, as the client knows it.
type place struct {
	slot
	req     driver.RefreshRequest
	sent    time.Time    // when the last refresh was sent
	hurried time.Time    // when the last look was due that news led to
	urgent  bool         // it is due sooner than its waiter TTL needs: something may have happened
	open    time.Time    // when the first was sent that was not answered; zero if all were
	answers chan refresh // holds the latest

	// While a foreign client is in the way of the first of the queue; else zero.
	foreign     time.Duration // the pause before the last look
	foreignEnds time.Time     // when its lock would have ended, as of that look
}

func (p *place) timeslot() *slot { return &p.slot }

func (p *place) name() string { return p.req.Name }

// A refresh is one request for a place and its answer.
type refresh struct {
	sent  instant
	reply driver.RefreshReply
}

func (u *usher) init(c *Client) {
	u.client = c
	u.timer = time.AfterFunc(time.Hour, u.tick)
	u.timer.Stop()
}

// join takes charge of a place that the store has given, and said blocker of.
func (u *usher) join(req driver.RefreshRequest, blocker driver.Blocker) *place {
	now := time.Now()
	p := &place{req: req, sent: now, answers: make(chan refresh, 1)}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.putLocked(p, now.Add(u.nextLookLocked(p, blocker)))
	return p
}

// leave ends the charge. An answer under way is dropped.
func (u *usher) leave(p *place) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.table.remove(p)
	p.index = -1
	u.foreignLocked(p, driver.Blocker{})
}

// unanswered returns when the first refresh was sent that has no answer; zero if
// all have.
func (u *usher) unanswered(p *place) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return p.open
}

// hurry renews a place, and so looks what became of it, as soon as may be.
func (u *usher) hurry(p *place) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := p.hurried.Add(lookAgain)
	if now := time.Now(); at.Before(now) {
		at = now
	}
	if at.Before(p.at) {
		p.hurried, p.urgent = at, true
		u.putLocked(p, at)
	}
}

// putLocked moves p to the time at, unless its waiter has left.
func (u *usher) putLocked(p *place, at time.Time) {
	if p.index >= 0 && u.table.put(p, at) {
		u.armLocked()
	}
}

// armLocked sets the timer to the first place's time.
func (u *usher) armLocked() {
	if u.table.Len() > 0 {
		u.timer.Reset(time.Until(u.table.items[0].at))
	}
}

// tick runs on the timer's goroutine when the first place is due.
func (u *usher) tick() {
	for _, batch := range batches(u.client.features.Router, u.due(time.Now()), (*place).name) {
		u.client.spawn(func(ctx context.Context) { u.refresh(ctx, batch) })
	}
}

// due returns the places to renew now and arms the timer for the next. One
// that gets no answer is due again after the usual time.
func (u *usher) due(now time.Time) (places []*place) {
	u.mu.Lock()
	defer u.mu.Unlock()
	urgent := false // nobody joins who would hold up the answer
	for u.table.Len() > 0 {
		p := u.table.items[0]
		limit := now
		if len(places) > 0 && !urgent {
			limit = now.Add(p.req.WaiterTTL / refreshJoin)
		}
		if p.at.After(limit) {
			break
		}
		urgent = urgent || p.urgent
		p.sent, p.urgent = now, false
		if p.open.IsZero() {
			p.open = now
		}
		u.table.put(p, now.Add(p.req.WaiterTTL/refreshPart))
		places = append(places, p)
	}
	u.armLocked()
	return places
}

// refresh sends one batch and hands out the answers. It runs on a goroutine of
// its own, started by tick, that ends with the request.
func (u *usher) refresh(ctx context.Context, batch []*place) {
	ctx, cancel := u.client.requestContext(ctx)
	defer cancel()
	reqs := make([]driver.RefreshRequest, len(batch))
	for i, p := range batch {
		reqs[i] = p.req
	}
	// INVARIANT I3: the clock starts before the first byte is written.
	sent := u.client.now()
	replies := u.client.features.Queuer.Refresh(ctx, reqs)
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, p := range batch {
		if err := replies[i].Err; err != nil {
			replies[i].Err = ask.Harmless(ctx, err)
		}
		u.answerLocked(p, refresh{sent, replies[i]})
	}
}

// answerLocked tells p's waiter of an answer and sets the time of the next
// refresh.
func (u *usher) answerLocked(p *place, r refresh) {
	p.open = time.Time{}
	pause := p.req.WaiterTTL / refreshRetry
	if r.reply.Err == nil {
		pause = u.nextLookLocked(p, r.reply.Blocker)
	}
	u.putLocked(p, time.Now().Add(pause))
	select {
	case <-p.answers: // not received yet, and out of date
	default:
	}
	p.answers <- r // only u.mu's owner sends: there is room
}

// nextLookLocked returns the time until the next refresh: a part of the waiter
// TTL or, for the first of the queue, until the lease in the way ends by itself
// or a foreign client may have given it back. Those behind need not look then,
// but would notice by their refresh.
func (u *usher) nextLookLocked(p *place, w driver.Blocker) time.Duration {
	usual := p.req.WaiterTTL/refreshPart - rand.N(p.req.WaiterTTL/refreshJitter)
	pause := usual
	if w.Place == 1 && w.ExpiresIn != driver.Never {
		pause = min(pause, max(w.ExpiresIn, lookAgain)+expirySlack)
	}
	u.foreignLocked(p, w)
	if p.foreign > 0 {
		pause = min(pause, max(p.foreign, time.Duration(u.foreign)*foreignShare))
	}
	p.urgent = pause < usual
	return pause
}

// foreignLocked notes whether a foreign client is in the way of p.
func (u *usher) foreignLocked(p *place, w driver.Blocker) {
	was := p.foreign
	ends := time.Now().Add(w.ExpiresIn)
	switch {
	case w.Place != 1 || !w.Foreign || p.index < 0:
		p.foreign = 0
	case was == 0 || ends.Sub(p.foreignEnds) > lookAgain/2 && w.ExpiresIn != driver.Never:
		p.foreign = lookAgain // another one, or one that has renewed its lock
	default:
		p.foreign = min(was*3/2, foreignLongest)
	}
	p.foreignEnds = ends
	if (was > 0) != (p.foreign > 0) {
		u.foreign += map[bool]int{true: 1, false: -1}[p.foreign > 0]
	}
}
