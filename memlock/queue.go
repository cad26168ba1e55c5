package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// Duties shown here. Waiters are served in the order in which the store saw them,
// in the step that makes room, and a dead one costs the others no more than its
// WaiterTTL (INVARIANT I7). Refresh keeps a place, and creates nothing. A notice
// speeds waiting up, and nothing depends on it.

// serveLocked hands the lock over to the first of the queue, and to those
// behind it, as long as the live leases allow it: readers that stand together
// are served together. INVARIANT I7: nobody is overtaken, however small their
// request.
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
		if err != nil { // there is no such token: the head waits, and is told why
			l.stuck = err
			return
		}
		l.queue = l.queue[1:]
		// The lease ends with the place, so that a waiter that died costs no
		// more than that. One that lives asks for the rest.
		h := l.grant(&head.req, token, now, head.until)
		l.ledger.handedOver(head, h, now)
		e.watches.Tell(head.req.LeaseID, driver.Notice{Token: h.token})
		v.AddLease(h.need, h.expiry.Sub(now))
		l.addHead(&v, now)
	}
}

// giveUpDoneLocked gives up the places of those who asked for work that is done
// by now, wherever in the queue they are, and tells them to look: their next
// request is answered with the record.
func (e *Engine) giveUpDoneLocked(l *lock, v *rules.View, now time.Time) {
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool {
		done := v.GivesUp(p.req.Once)
		if done {
			l.ledger.left(p, now)
			e.watches.Tell(p.req.LeaseID, driver.Notice{})
		}
		return done
	})
}

// givePlace gives req a place, or lengthens the one it has, and returns which.
// A repeat stays where it is in the queue: the order is that of the first
// requests. INVARIANT I7.
func (l *lock) givePlace(req *driver.AcquireRequest, now time.Time) (rank int) {
	if rank = l.rank(req.LeaseID); rank == 0 {
		p := &place{req: *req, asked: now}
		p.req.Holder = copyHolder(req.Holder)
		l.queue = append(l.queue, p)
		l.ledger.queued(p, now)
		rank = len(l.queue)
	}
	lengthen(&l.queue[rank-1].until, now.Add(req.WaiterTTL))
	return rank
}

// Refresh implements driver.Queuer. As with Extend, each request has an answer of
// its own.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	failed := func(err error) driver.RefreshReply { return driver.RefreshReply{Err: err} }
	return each(ctx, e, reqs, failed, func(req driver.RefreshRequest, now time.Time) (reply driver.RefreshReply) {
		reply.AcquireReply, reply.Err = e.refreshLocked(req, now)
		return reply
	})
}

func (e *Engine) refreshLocked(req driver.RefreshRequest, now time.Time) (driver.AcquireReply, error) {
	l := e.settleLocked(req.Name, now)
	// The place has become a lease, and the notice of it was lost. The lease is not
	// lengthened: whoever asks does not know of it yet, and may never hear the
	// answer. INVARIANT I7.
	if h := l.held(req.LeaseID); h != nil {
		return driver.AcquireReply{Outcome: driver.Granted, Token: h.token}, nil
	}
	rank := l.rank(req.LeaseID)
	if rank == 0 { // nor is a place given here: it would be the last, not the lost one
		return driver.AcquireReply{}, driver.ErrLost
	}
	lengthen(&l.queue[rank-1].until, now.Add(req.WaiterTTL))
	return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(rank, now)}, l.stuck
}

// Watch implements driver.Queuer. All waiters of this store are in this process,
// so that nothing has to be sent anywhere.
func (e *Engine) Watch(id driver.LeaseID) driver.Watch { return e.watches.Watch(id) }
