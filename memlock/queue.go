package memlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// serveLocked hands the lock over to the first of the queue, and to those
// behind it, as long as the live leases allow it. INVARIANT I7: nobody is
// overtaken, however small their request.
func (e *Engine) serveLocked(l *lock, now time.Time) {
	for len(l.queue) > 0 {
		head := l.queue[0]
		if head.req.Once && l.record != nil {
			l.queue = l.queue[1:]
			e.watches.Tell(head.req.LeaseID, driver.Notice{})
			continue
		}
		if !l.fits(head.req) {
			return
		}
		l.queue = l.queue[1:]
		// MinToken was checked when the place was given. The lease ends with
		// the place, so that a waiter that died costs no more than that.
		least := max(uint64(now.UnixMicro()), head.req.MinToken+1)
		h := l.grant(head.req, least, head.until)
		e.watches.Tell(head.req.LeaseID, driver.Notice{Token: h.token})
	}
}

// enqueue gives req a place, or renews the one it has, and returns which.
func (l *lock) enqueue(req driver.AcquireRequest, now time.Time) int {
	i := l.find(req.LeaseID)
	if i < 0 {
		i = len(l.queue)
		req.Holder = copyHolder(req.Holder)
		l.queue = append(l.queue, &place{req: req, asked: now})
	}
	l.queue[i].lengthen(now.Add(req.WaiterTTL))
	return i + 1
}

// lengthen moves the end of the place to t unless it is later already.
func (p *place) lengthen(t time.Time) {
	if t.After(p.until) {
		p.until = t
	}
}

// Refresh implements driver.Queuer.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	now, err := e.enter(ctx)
	if err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}
	defer e.mu.Unlock()
	for i, req := range reqs {
		replies[i].AcquireReply, replies[i].Err = e.refreshLocked(req, now)
	}
	return replies
}

func (e *Engine) refreshLocked(req driver.RefreshRequest, now time.Time) (driver.AcquireReply, error) {
	l := e.settledLocked(req.Name, now)
	if h := l.held(req.LeaseID); h != nil {
		return driver.AcquireReply{Outcome: driver.Granted, Token: h.token}, nil
	}
	i := l.find(req.LeaseID)
	if i < 0 {
		return driver.AcquireReply{}, driver.ErrLost
	}
	l.queue[i].lengthen(now.Add(req.WaiterTTL))
	return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(i+1, now)}, nil
}

// Watch implements driver.Queuer.
func (e *Engine) Watch(id driver.LeaseID) driver.Watch { return e.watches.Watch(id) }
