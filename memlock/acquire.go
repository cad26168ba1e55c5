package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Acquire implements driver.Engine.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	now, err := e.enter(ctx)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.mu.Unlock()
	e.sweepLocked(now)
	return e.acquireLocked(req, now)
}

func (e *Engine) acquireLocked(req driver.AcquireRequest, now time.Time) (driver.AcquireReply, error) {
	l := e.settledLocked(req.Name, now)
	if reply, decided := e.decidedLocked(l, req, now); decided {
		return reply, nil
	}
	if err := l.checkKind(req); err != nil {
		return driver.AcquireReply{}, err
	}
	least, err := driver.LeastToken(uint64(now.UnixMicro()), req.MinToken)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	// INVARIANT I7: whoever has a place comes first. If it were this request's
	// turn, settling would have granted it.
	if len(l.queue) == 0 && l.fits(req) {
		req.Holder = copyHolder(req.Holder)
		h := l.grant(req, least, now.Add(req.TTL))
		return driver.AcquireReply{Outcome: driver.Granted, Token: h.token}, nil
	}
	place := 0
	if req.Queue {
		place = l.enqueue(req, now)
	}
	return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(place, now)}, nil
}

// decidedLocked answers a request that is cancelled, a repeat, or too late.
func (e *Engine) decidedLocked(l *lock, req driver.AcquireRequest, now time.Time) (reply driver.AcquireReply, decided bool) {
	// INVARIANT I5: a request overtaken by its own cancel grants nothing.
	if e.cancelledLocked(req.LeaseID, now) {
		return driver.AcquireReply{Outcome: driver.Cancelled}, true
	}
	if h := l.held(req.LeaseID); h != nil {
		// INVARIANT I6: a repeat gets the token of the first time.
		h.lengthen(now.Add(req.TTL))
		return driver.AcquireReply{Outcome: driver.Granted, Token: h.token}, true
	}
	if req.Once && l.record != nil {
		return driver.AcquireReply{Outcome: driver.Recorded, Record: slices.Clone(l.record.data)}, true
	}
	return driver.AcquireReply{}, false
}

// AcquireAll implements driver.AllAcquirer.
func (e *Engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.AllReply{}, err
	}
	defer e.mu.Unlock()
	e.sweepLocked(now)
	for i, req := range reqs {
		reply, err := e.wouldGrantLocked(req, now)
		if err != nil {
			return driver.AllReply{}, err
		}
		if reply.Outcome != driver.Granted {
			return driver.AllReply{Outcome: reply.Outcome, Refused: i, Blocker: reply.Blocker}, nil
		}
	}
	all := driver.AllReply{Outcome: driver.Granted}
	for _, req := range reqs {
		reply, err := e.acquireLocked(req, now)
		if err != nil {
			return driver.AllReply{}, err // cannot be: it would be granted
		}
		all.Tokens = append(all.Tokens, reply.Token)
	}
	return all, nil
}

// wouldGrantLocked answers as Acquire would, but grants nothing.
func (e *Engine) wouldGrantLocked(req driver.AcquireRequest, now time.Time) (driver.AcquireReply, error) {
	granted := driver.AcquireReply{Outcome: driver.Granted}
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	l := e.settledLocked(req.Name, now)
	switch {
	case e.cancelledLocked(req.LeaseID, now):
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	case l.held(req.LeaseID) != nil:
		return granted, nil
	}
	if err := l.checkKind(req); err != nil {
		return driver.AcquireReply{}, err
	}
	if _, err := driver.LeastToken(uint64(now.UnixMicro()), req.MinToken); err != nil {
		return driver.AcquireReply{}, err
	}
	if len(l.queue) > 0 || !l.fits(req) {
		return driver.AcquireReply{Outcome: driver.Held, Blocker: l.blocker(0, now)}, nil
	}
	return granted, nil
}
