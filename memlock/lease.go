package memlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Duties shown here. Whoever asks about a lease must have its whole ID, and gets
// that one or ErrLost: a stale holder touches no successor and brings nothing
// back (INVARIANT I4). A batch is answered request by request. What makes room
// hands the lock over in the same step (I7).

// Extend implements driver.Engine. One request that fails spoils no other: each
// has an answer of its own.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	failed := func(err error) error { return err }
	return each(ctx, e, reqs, failed, func(req driver.ExtendRequest, now time.Time) error {
		// INVARIANT I4: only the exact lease, and never a new one.
		h := e.settleLocked(req.Name, now).held(req.LeaseID)
		if h == nil {
			return driver.ErrLost
		}
		lengthen(&h.expiry, now.Add(req.TTL))
		return nil
	})
}

// Release implements driver.Engine. It gives up a place as well as a lease: its
// sender may not know which of them it has.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	// The tombstone is put up first, and whether or not there is anything to end:
	// the request that it is to stop may still be under way. INVARIANT I5.
	if req.Cancel {
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
	}
	l := e.settleLocked(req.Name, now)
	l.giveUpPlace(req.LeaseID, now)
	// INVARIANT I4: only the exact lease.
	h := l.held(req.LeaseID)
	if h != nil {
		l.ledger.ended(endOf(req), h, now)
	}
	switch {
	case h == nil: // over, released before, or never granted
	case req.KeepFor > 0: // not twice: what is kept closed is not held any more
		h.keepClosed(now.Add(req.KeepFor))
		if len(l.queue) > 0 {
			// The end of what is in the way may be nearer now, and nobody will
			// announce it: the head must set its timer anew.
			e.watches.Tell(l.queue[0].req.LeaseID, driver.Notice{})
		}
	default:
		l.end(h)
	}
	// Even if there was no lease: the place that was given up may have been what
	// the others waited for.
	e.serveLocked(l, now)
	if h == nil {
		return driver.ErrLost
	}
	return nil
}

// endOf returns how a lease ends that is given back: lost is the client's word.
func endOf(req driver.ReleaseRequest) driver.EventKind {
	if req.Lost {
		return driver.EventLost
	}
	return driver.EventReleased
}

// Downgrade implements driver.Downgrader. The token and the expiry stay, nobody
// has the lock in between, and a repeat finds the mode as it asks for.
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	l := e.settleLocked(req.Name, now)
	h := l.held(req.LeaseID)
	if h == nil || h.need.Mode == driver.Semaphore {
		return driver.ErrLost
	}
	h.need.Mode = driver.Shared // INVARIANT I6: as it may be already
	e.serveLocked(l, now)
	return nil
}
