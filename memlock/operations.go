package memlock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	now, err := e.enter(ctx)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer e.mu.Unlock()
	for i, req := range reqs {
		// INVARIANT I4: only the exact lease, and never a new one.
		if h := e.settleLocked(req.Name, now).held(req.LeaseID); h != nil {
			h.lengthen(now.Add(req.TTL))
		} else {
			errs[i] = driver.ErrLost
		}
	}
	return errs
}

// Release implements driver.Engine.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	if req.Cancel {
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
	}
	l := e.settleLocked(req.Name, now)
	l.giveUpPlace(req.LeaseID)
	// INVARIANT I4: only the exact lease.
	h := l.held(req.LeaseID)
	switch {
	case h == nil:
	case req.KeepFor > 0:
		h.keepClosed(now.Add(req.KeepFor))
		if len(l.queue) > 0 {
			e.watches.Tell(l.queue[0].req.LeaseID, driver.Notice{}) // the end may be nearer now
		}
	default:
		l.end(h)
	}
	e.serveLocked(l, now)
	if h == nil {
		return driver.ErrLost
	}
	return nil
}

// Downgrade implements driver.Downgrader.
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	l := e.settleLocked(req.Name, now)
	h := l.held(req.LeaseID)
	if h == nil || h.req.Mode == driver.Semaphore {
		return driver.ErrLost
	}
	h.req.Mode = driver.Shared
	e.serveLocked(l, now)
	return nil
}
