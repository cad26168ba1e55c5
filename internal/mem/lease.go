package mem

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. A request about a lease has its whole ID, and finds that lease or
// ErrLost: a stale holder touches no successor and restores nothing (INVARIANT I4). Each
// request of a batch has its own reply. A request that makes the lock free hands it over in
// the same step (I7).

// Extend implements driver.Engine.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	failed := func(err error) error { return err }
	return each(ctx, e, reqs, failed, func(req driver.ExtendRequest, now time.Time) error {
		// INVARIANT I4: only the exact lease, and never a new one.
		h := e.settleLocked(req.Name, now).held(req.LeaseID)
		if h == nil || req.Token != 0 && req.Token != h.token {
			return driver.ErrLost
		}
		h.renew(now, req.TTL)
		return nil
	})
}

// Release implements driver.Engine. It also gives up a place, because the client may not know
// whether it has a lease or a place.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return e.step(ctx, func(now time.Time) error {
		// The tombstone is set even if there is nothing to end: the request that it stops may
		// still be under way. INVARIANT I5.
		if req.Cancel {
			e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
		}
		l := e.settleLocked(req.Name, now)
		l.giveUpPlace(req.LeaseID, now)
		// INVARIANT I4: only the exact lease.
		h := l.held(req.LeaseID)
		if h != nil {
			l.ledger.leased(endOf(req), h, now)
		}
		switch {
		case h == nil: // it has expired, was released before, or was never granted
		case req.KeepFor > 0: // a repeat does not get here: a lease that is kept closed is not held
			h.keepClosed(now, req.KeepFor)
			if len(l.queue) > 0 {
				// The lock may become free earlier now, without a notice: the head must reset
				// its timer.
				e.watches.Tell(l.queue[0].req.LeaseID, driver.Notice{})
			}
		default:
			l.end(h)
		}
		// Even if there was no lease: other waiters may have been behind the place that was
		// given up.
		e.serveLocked(l, now)
		if h == nil {
			return driver.ErrLost
		}
		return nil
	})
}

// endOf returns the kind of the event of a release. The client sets Lost.
func endOf(req driver.ReleaseRequest) lockinfo.HistoryKind {
	if req.Lost {
		return lockinfo.HistoryLost
	}
	return lockinfo.HistoryReleased
}

// Downgrade implements driver.Downgrader. The token and the expiry stay, the lock is never
// free in between, and a repeat changes nothing.
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return e.step(ctx, func(now time.Time) error {
		l := e.settleLocked(req.Name, now)
		h := l.held(req.LeaseID)
		if h == nil || h.mode.Limit() != 0 {
			return driver.ErrLost
		}
		h.mode = lockinfo.Shared // INVARIANT I6: a repeat changes nothing
		e.serveLocked(l, now)
		return nil
	})
}
