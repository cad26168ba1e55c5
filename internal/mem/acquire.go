package mem

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. The check and the record are one step (INVARIANT I1). A repeated request
// has the effect and the answer of the first one (I6). A request that arrives after its cancel
// has no effect (I5), and neither has one that fails. No later waiter overtakes an earlier one
// (I7). Several locks are taken together or not at all.

// Acquire implements driver.Engine.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	// An unsupported request is refused before it has any effect.
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	return answer(ctx, e, func(now time.Time) (driver.AcquireReply, error) {
		e.sweepLocked(now)
		return e.acquireLocked(&req, now)
	})
}

// acquireLocked settles the name, decides about the request, and carries the decision out. It
// changes nothing for the request before the decision, so that an error leaves no trace.
func (e *Engine) acquireLocked(req *driver.AcquireRequest, now time.Time) (reply driver.AcquireReply, err error) {
	l := e.settleLocked(req.Name, now)
	var v verdict
	if err := e.judgeLocked(l, req, now, &v); err != nil {
		return reply, err
	}
	switch reply.Outcome = v.outcome; v.outcome {
	case driver.Granted:
		if v.own != nil { // INVARIANT I6: a repeat gets the token of the first time
			v.own.renew(now, req.TTL)
		} else {
			// The store counts the TTL from when it carries the request out.
			// The client counts from before it sent it, and so ends earlier.
			v.own = l.grant(req, v.token, now, now.Add(req.TTL))
			l.ledger.leased(lockinfo.HistoryAcquired, v.own, now)
		}
		reply.Token = v.own.token
	case driver.Recorded:
		reply.Record = slices.Clone(l.record.data)
	case driver.Held:
		place := 0
		if req.Queue { // a repeat keeps its place
			place = l.givePlace(req, now)
		}
		reply.Blocker = v.Blocker(v.first.describe(now), place, len(l.queue))
	}
	return reply, nil
}

// A verdict is the decision about a request.
type verdict struct {
	rules.View
	outcome driver.Outcome
	token   uint64 // the token of the new lease, if one is granted
	own     *lease // the live lease of the request's lease ID, or nil
	first   *lease // the live lease that ends first, or nil
}

// judgeLocked decides about a request for a settled lock, and fills in v. It changes nothing.
// INVARIANT I1: the caller carries the verdict out before it unlocks e.mu, so that the check and
// the record are one step.
func (e *Engine) judgeLocked(l *lock, req *driver.AcquireRequest, now time.Time, v *verdict) (err error) {
	v.first = l.look(&v.View, now)
	v.own = l.held(req.LeaseID)
	v.Own, v.Cancelled = v.own != nil, e.cancelledLocked(req.LeaseID, now)
	v.Placed = req.First && l.rank(req.LeaseID) > 0
	v.outcome, v.token, err = v.Judge(req, uint64(now.UnixMicro()))
	if v.outcome == driver.Granted && !v.Own {
		v.token, err = rules.NextToken(l.lastToken, v.token) // INVARIANT I2
	}
	return err
}

// AcquireAll implements driver.AllAcquirer. It decides about every request before it records the
// first lease, so that there is nothing to undo. The names differ, so that no lease changes the
// verdict about another.
func (e *Engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	return answer(ctx, e, func(now time.Time) (driver.AllReply, error) {
		e.sweepLocked(now)
		for i := range reqs {
			req := &reqs[i]
			if err := driver.CheckSupport(e.Capabilities(), *req); err != nil {
				return driver.AllReply{}, err
			}
			l := e.settleLocked(req.Name, now)
			var v verdict
			if err := e.judgeLocked(l, req, now, &v); err != nil {
				return driver.AllReply{}, err
			}
			switch v.outcome {
			case driver.Granted:
			case driver.Held:
				return driver.AllReply{Outcome: v.outcome, Refused: i, Blocker: v.Blocker(v.first.describe(now), 0, len(l.queue))}, nil
			default:
				return driver.AllReply{Outcome: v.outcome, Refused: i}, nil
			}
		}
		all := driver.AllReply{Outcome: driver.Granted}
		for i := range reqs {
			reply, err := e.acquireLocked(&reqs[i], now)
			if err != nil {
				return driver.AllReply{}, err // cannot happen: the verdict was Granted
			}
			all.Tokens = append(all.Tokens, reply.Token)
		}
		return all, nil
	})
}
