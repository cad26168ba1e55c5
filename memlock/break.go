package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Duties shown here. A break ends exactly the leases that it was decided about,
// by their tokens: one that comes late or twice touches no later holder
// (INVARIANT I4), and a repeat is answered as the first time (I6). The record,
// the hand-over and the end are one step; the holders are told after it, without
// the mutex, because a client may call the engine from there.

// A broken is the record of a lease that was broken.
type broken struct {
	driver.Broken
	at time.Time // which becomes Ago when it is shown
}

// Break implements driver.Breaker.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	all, ended, err := e.breakLeases(ctx, req, nil)
	e.tellLost(req.Name, ended)
	return all, err
}

// breakLeases ends the leases that req is about and calls ending, unless it is
// nil, before the lock is handed over. It returns the records of all that req
// has ended, and of those that it has ended now.
func (e *Engine) breakLeases(ctx context.Context, req driver.BreakRequest, ending func(*lock, time.Time)) (all, ended []driver.Broken, err error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer e.mu.Unlock()
	e.sweepLocked(now)
	l := e.settleLocked(req.Name, now)
	for _, h := range slices.Clone(l.leases) {
		if req.Hits(h.token, h.released) {
			l.end(h)
			l.ledger.broken(h, &req, now)
			b := driver.Broken{
				ID: req.ID, LeaseID: h.id, Token: h.token, Permits: h.need.Permits, Holder: copyHolder(h.who),
				Author: req.Author, Reason: req.Reason,
			}
			l.broken, ended = append(l.broken, broken{b, now}), append(ended, b)
		}
	}
	for _, b := range l.broken {
		if b.ID == req.ID { // INVARIANT I6: a repeat gets the answer of the first time
			all = append(all, b.describe(now))
		}
	}
	// The answer names all that were ended; only the latest are remembered.
	// INVARIANT I11.
	l.broken = slices.Delete(l.broken, 0, max(0, len(l.broken)-driver.MaxBreaks))
	if ending != nil {
		ending(l, now)
	}
	e.serveLocked(l, now)
	return all, ended, nil
}

// Breaks implements driver.Breaker. It asks about the past, and so hands nothing
// over and creates no name.
func (e *Engine) Breaks(ctx context.Context, name string) ([]driver.Broken, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var all []driver.Broken
	if l := e.locks[name]; l != nil {
		l.purge(now)
		for _, b := range l.broken {
			all = append(all, b.describe(now))
		}
	}
	return all, nil
}

func (b broken) describe(now time.Time) driver.Broken {
	b.Holder, b.Ago = copyHolder(b.Holder), now.Sub(b.at)
	return b.Broken
}

// OnLoss implements driver.LossTeller.
func (e *Engine) OnLoss(told func(driver.Loss)) (stop func()) { return e.losses.OnLoss(told) }

// tellLost tells everybody of leases that were broken: each client finds its own
// by the lease ID. e.mu is not held.
func (e *Engine) tellLost(name string, ended []driver.Broken) {
	for _, b := range ended {
		e.losses.Tell(driver.Loss{Name: name, LeaseID: b.LeaseID, Err: b.Err()})
	}
}
