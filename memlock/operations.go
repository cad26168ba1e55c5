package memlock

import (
	"context"
	"maps"
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

	// INVARIANT I5: a request overtaken by its own cancel grants nothing.
	if until, ok := e.tombstones[req.LeaseID]; ok && now.Before(until) {
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	}
	if l := e.heldLocked(req.Name, req.LeaseID, now); l != nil {
		// INVARIANT I6: a repeat gets the token of the first time.
		l.lengthen(now.Add(req.TTL))
		return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}, nil
	}
	if l := e.liveLocked(req.Name, now); l != nil {
		return driver.AcquireReply{Outcome: driver.Held, InTheWay: driver.InTheWay{
			Holder: copyHolder(l.holder), ExpiresIn: l.expiry.Sub(now),
		}}, nil
	}
	token, err := e.nextTokenLocked(req, now)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	e.locks[req.Name] = &lock{lastToken: token, lease: &lease{
		id: req.LeaseID, token: token, holder: copyHolder(req.Holder), expiry: now.Add(req.TTL),
	}}
	return driver.AcquireReply{Outcome: driver.Granted, Token: token}, nil
}

// nextTokenLocked returns a token above every earlier one of the name,
// whatever the clock does. INVARIANT I2.
func (e *Engine) nextTokenLocked(req driver.AcquireRequest, now time.Time) (uint64, error) {
	token, err := driver.LeastToken(uint64(now.UnixMicro()), req.MinToken)
	if err != nil {
		return 0, err
	}
	if l := e.locks[req.Name]; l != nil {
		token = max(token, l.lastToken+1)
	}
	return token, nil
}

// copyHolder returns a copy that shares no labels with h: callers may change
// what they gave and what they got, as with a store that is elsewhere.
func copyHolder(h driver.Holder) driver.Holder {
	h.Labels = maps.Clone(h.Labels)
	return h
}

// lengthen moves the expiry to t unless it is later already.
func (l *lease) lengthen(t time.Time) {
	if t.After(l.expiry) {
		l.expiry = t
	}
}

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
		if l := e.heldLocked(req.Name, req.LeaseID, now); l != nil {
			l.lengthen(now.Add(req.TTL))
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
	l := e.heldLocked(req.Name, req.LeaseID, now)
	if l == nil {
		return driver.ErrLost
	}
	if req.KeepFor > 0 {
		l.released, l.expiry = true, now.Add(req.KeepFor)
	} else {
		e.locks[req.Name].lease = nil
	}
	e.signalLocked(req.Name)
	return nil
}

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.Lock{}, err
	}
	defer e.mu.Unlock()
	return e.describeLocked(name, now), nil
}

func (e *Engine) describeLocked(name string, now time.Time) driver.Lock {
	d := driver.Lock{Name: name}
	if l := e.locks[name]; l != nil {
		d.LastToken = l.lastToken
	}
	if l := e.liveLocked(name, now); l != nil {
		d.Holders = []driver.Holding{{
			LeaseID: l.id, Token: l.token, Holder: copyHolder(l.holder),
			ExpiresIn: l.expiry.Sub(now), Released: l.released,
		}}
	}
	return d
}
