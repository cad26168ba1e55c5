package mem

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. Waiters are served in the order in which the store saw them, in the step
// that makes the lock free, and a dead one delays the others by its WaiterTTL at most
// (INVARIANT I7). Refresh keeps a place, and creates nothing. Notices only make waits shorter.

// serveLocked hands the lock over to waiters in the order of the queue, as long as the live
// leases allow it: adjacent readers are served together. INVARIANT I7: a smaller request
// does not overtake.
func (e *Engine) serveLocked(l *lock, now time.Time) {
	if l.stuck = nil; len(l.queue) == 0 {
		return
	}
	var v rules.View
	l.look(&v, now)
	if v.Recorded {
		e.giveUpDoneLocked(l, &v, now)
		l.addHead(&v, now)
	}
	for v.Due() {
		head := l.queue[0]
		token, err := rules.NextToken(l.lastToken, rules.LeastToken(uint64(now.UnixMicro()), head.req.MinToken))
		if err != nil { // no token is left: the head waits, and its refresh returns the error
			l.stuck = err
			return
		}
		l.queue = l.queue[1:]
		// The lease ends when the place would, so that a dead waiter causes no longer delay.
		// A live waiter extends it.
		h := l.grant(&head.req, token, now, head.until)
		event := h.event(lockinfo.HistoryHandedOver, now)
		event.Waited = now.Sub(head.asked)
		l.ledger.write(event, now)
		e.watches.Tell(head.req.LeaseID, driver.Notice{Token: h.token})
		v.AddLease(h.mode, h.expiry.Sub(now))
		l.addHead(&v, now)
	}
}

// giveUpDoneLocked removes the places with Once, anywhere in the queue, after the work is done. It
// notifies their waiters, whose next request gets the record.
func (e *Engine) giveUpDoneLocked(l *lock, v *rules.View, now time.Time) {
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool {
		done := v.GivesUp(p.req.Once)
		if done {
			l.ledger.write(p.leftEvent(now), now)
			e.watches.Tell(p.req.LeaseID, driver.Notice{})
		}
		return done
	})
}

// givePlace creates the place of req, or extends it, and returns its position. A repeat stays
// at its position: the order is by first request. INVARIANT I7.
func (l *lock) givePlace(req *driver.AcquireRequest, now time.Time) (rank int) {
	if rank = l.rank(req.LeaseID); rank == 0 {
		p := &place{req: *req, asked: now}
		p.req.Holder = copyHolder(req.Holder)
		l.queue = append(l.queue, p)
		l.ledger.write(p.event(lockinfo.HistoryQueued), now)
		rank = len(l.queue)
	}
	lengthen(&l.queue[rank-1].until, now.Add(req.WaiterTTL))
	return rank
}

// Refresh implements driver.Queuer.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	failed := func(err error) driver.RefreshReply { return driver.RefreshReply{Err: err} }
	return each(ctx, e, reqs, failed, func(req driver.RefreshRequest, now time.Time) (reply driver.RefreshReply) {
		reply.AcquireReply, reply.Err = e.refreshLocked(req, now)
		return reply
	})
}

func (e *Engine) refreshLocked(req driver.RefreshRequest, now time.Time) (driver.AcquireReply, error) {
	l := e.settleLocked(req.Name, now)
	// The place has become a lease, and the notice was lost. The lease is not lengthened: the
	// waiter does not know of it yet, and may never get this reply. INVARIANT I7.
	if h := l.held(req.LeaseID); h != nil {
		return driver.AcquireReply{Outcome: driver.Granted, Token: h.token}, nil
	}
	rank := l.rank(req.LeaseID)
	if rank == 0 { // no new place, because it would be at the end of the queue
		return driver.AcquireReply{}, driver.ErrLost
	}
	if req.WaiterTTL == 0 {
		l.giveUpPlace(req.LeaseID, now)
		e.serveLocked(l, now) // other waiters may have been behind it
		return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(0, now)}, nil
	}
	lengthen(&l.queue[rank-1].until, now.Add(req.WaiterTTL))
	return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(rank, now)}, l.stuck
}

// Watch implements driver.Queuer. All waiters of this store are in this process, so the mailbox
// is enough.
func (e *Engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.watches.Watch(id) }
