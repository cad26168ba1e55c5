package mem

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. A break ends exactly the leases that it names by their tokens: a late or
// repeated one touches no later holder (INVARIANT I4), and a repeat gets the first reply (I6).
// The end, the record and the hand-over are one step. The holders are notified after it, without
// the mutex, because their clients may call the engine.

// A broken is the record of a lease that was broken.
type broken struct {
	lockinfo.Broken
	at time.Time // when the lease was broken, for Ago
}

// Break implements driver.Breaker.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return e.breakLeases(ctx, req, func(*lock, time.Time) {})
}

// breakLeases ends the leases that req hits, and calls ending before it hands the lock over. It
// returns the records of all leases that req has ended, now or the first time.
func (e *Engine) breakLeases(ctx context.Context, req driver.BreakRequest, ending func(*lock, time.Time)) (all []lockinfo.Broken, err error) {
	var ended []lockinfo.Broken // the leases that this call ends
	err = e.step(ctx, func(now time.Time) error {
		e.sweepLocked(now)
		l := e.settleLocked(req.Name, now)
		for _, h := range slices.Clone(l.leases) {
			if req.Hits(h.token, h.released) {
				ended = append(ended, l.breakLease(h, req, now))
			}
		}
		for _, b := range l.broken {
			if b.ID == req.ID { // INVARIANT I6: a repeat gets the answer of the first time
				all = append(all, b.describe(now))
			}
		}
		// The reply has all leases that were ended; only the latest records are kept.
		// INVARIANT I11.
		l.broken = slices.Delete(l.broken, 0, max(0, len(l.broken)-driver.MaxBreaks))
		ending(l, now)
		e.serveLocked(l, now)
		return nil
	})
	for _, b := range ended { // to all clients: each finds its own by the lease ID
		e.losses.Tell(driver.Loss{Name: req.Name, LeaseID: b.LeaseID, Err: b.Err()})
	}
	return all, err
}

// breakLease ends one lease and records it.
func (l *lock) breakLease(h *lease, req driver.BreakRequest, now time.Time) lockinfo.Broken {
	l.end(h)
	event := h.event(lockinfo.HistoryBroken, now)
	event.Author, event.Reason = req.Author, req.Reason
	l.ledger.write(event, now)
	b := lockinfo.Broken{
		ID: req.ID, LeaseID: h.id, Token: h.token, Mode: h.mode, Holder: copyHolder(h.who),
		Author: req.Author, Reason: req.Reason,
	}
	l.broken = append(l.broken, broken{b, now})
	return b
}

// Breaks implements driver.Breaker. It does not hand the lock over, and creates no name.
func (e *Engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	return answer(ctx, e, func(now time.Time) ([]lockinfo.Broken, error) {
		var all []lockinfo.Broken
		if l := e.locks[name]; l != nil {
			l.purge(now)
			for _, b := range l.broken {
				all = append(all, b.describe(now))
			}
		}
		return all, nil
	})
}

func (b broken) describe(now time.Time) lockinfo.Broken {
	b.Holder, b.Ago = copyHolder(b.Holder), now.Sub(b.at)
	return b.Broken
}

// OnLoss implements driver.LossTeller.
func (e *Engine) OnLoss(listener func(driver.Loss)) (stop func()) { return e.losses.OnLoss(listener) }
