package sqlitelock

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A lease is one row of the table of that name.
type lease struct {
	id       string
	token    int64
	holder   string
	expiry   int64
	released bool
}

func (l *lease) columns() []any {
	return []any{&l.id, &l.token, &l.holder, &l.expiry, &l.released}
}

// live reports whether the lease stands in the way of others.
func (l *lease) live(now instant) bool { return now.boot < l.expiry }

// heldBy reports whether the lease is id's and still its to use.
func (l *lease) heldBy(id driver.LeaseID, now instant) bool {
	return l.live(now) && l.id == string(id) && !l.released
}

func (l *lease) expiresIn(now instant) time.Duration { return time.Duration(l.expiry - now.boot) }

// describe returns the holder for people; a text that is not ours says
// nothing.
func (l *lease) describe() driver.Holder {
	var h driver.Holder
	if json.Unmarshal([]byte(l.holder), &h) != nil {
		return driver.Holder{}
	}
	return h
}

func (l *lease) inTheWay(now instant) driver.AcquireReply {
	return driver.AcquireReply{Outcome: driver.Held, InTheWay: driver.InTheWay{
		Holder: l.describe(), ExpiresIn: l.expiresIn(now),
	}}
}

// find reads the lease of a name with stmt; the zero lease is over.
func (e *Engine) find(stmt *sql.Stmt, name string) (lease, error) {
	var l lease
	found, err := one(stmt, []any{name, e.clock.bootID}, l.columns()...)
	if err != nil || !found {
		return lease{}, err
	}
	return l, nil
}

// Acquire implements driver.Engine. While another lease is live it only
// reads, so that waiters do not queue for the write lock.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	reply, decided, err := e.glance(ctx, req)
	if decided || err != nil {
		return reply, err
	}
	err = e.transact(ctx, func(now instant) error {
		reply, err = e.acquire(req, now)
		return err
	})
	if err != nil {
		return driver.AcquireReply{}, err
	}
	return reply, nil
}

// glance answers from a read if another lease is live or the request was
// called off: both were so at the moment of the read. Nothing is granted
// here: only a transaction can tell that a name is free and take it.
func (e *Engine) glance(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, decided bool, err error) {
	err = e.query(ctx, func() error {
		l, err := e.find(e.read.lease, req.Name)
		if err != nil {
			return err
		}
		now, err := e.clock.now() // after the read: a lease live now was live then
		if err != nil {
			return err
		}
		var cancelled bool
		if _, err := one(e.read.isCancelled, []any{req.LeaseID, e.clock.bootID, now.boot}, &cancelled); err != nil {
			return err
		}
		switch {
		case cancelled:
			reply, decided = driver.AcquireReply{Outcome: driver.Cancelled}, true
		case l.live(now) && !l.heldBy(req.LeaseID, now):
			reply, decided = l.inTheWay(now), true
		}
		return nil
	})
	return reply, decided, err
}

// acquire decides about a request inside a transaction. INVARIANT I1: the
// check and the record are one step.
func (e *Engine) acquire(req driver.AcquireRequest, now instant) (driver.AcquireReply, error) {
	var none driver.AcquireReply
	// INVARIANT I5: a request overtaken by its own cancel grants nothing.
	var cancelled bool
	if _, err := one(e.write.isCancelled, []any{req.LeaseID, e.clock.bootID, now.boot}, &cancelled); err != nil {
		return none, err
	}
	if cancelled {
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	}
	l, err := e.find(e.write.lease, req.Name)
	switch {
	case err != nil:
		return none, err
	case l.heldBy(req.LeaseID, now):
		// INVARIANT I6: a repeat gets the token of the first time.
		err := run(e.write.lengthen, req.Name, e.clock.bootID, req.LeaseID, now.boot, now.after(req.TTL))
		return driver.AcquireReply{Outcome: driver.Granted, Token: uint64(l.token)}, err
	case l.live(now):
		return l.inTheWay(now), nil
	}
	token, err := e.nextToken(req, now)
	if err != nil {
		return none, err
	}
	holder, err := json.Marshal(req.Holder)
	if err != nil {
		return none, fmt.Errorf("%w holder: %w", driver.ErrInvalid, err)
	}
	if err := run(e.write.putLease, req.Name, req.LeaseID, token, string(holder), e.clock.bootID, now.after(req.TTL)); err != nil {
		return none, err
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: token}, e.sweep(now)
}

// nextToken draws and records a token above every earlier one of the name,
// whatever the clock does. INVARIANT I2.
func (e *Engine) nextToken(req driver.AcquireRequest, now instant) (uint64, error) {
	least, err := driver.LeastToken(now.micros, req.MinToken)
	if err != nil {
		return 0, err
	}
	var token uint64
	if _, err := one(e.write.nextToken, []any{req.Name, int64(least)}, &token); err != nil {
		return 0, err
	}
	if token > driver.MaxToken {
		return 0, fmt.Errorf("%w: the fencing tokens of this name are used up", driver.ErrUnavailable)
	}
	return token, nil
}

// The sweep's bounds. A grant leaves at most one row of each kind behind, and
// every sweepEvery grants up to sweepRows of each are taken away, so that
// litter shrinks wherever there is work.
const (
	sweepEvery = 16
	sweepRows  = 64
)

// sweep forgets what is over, with one grant in sweepEvery and the first of
// each engine. INVARIANT I11.
func (e *Engine) sweep(now instant) error {
	e.grants++
	if e.grants%sweepEvery != 1 {
		return nil
	}
	if err := run(e.write.sweepLeases, e.clock.bootID, now.boot, sweepRows); err != nil {
		return err
	}
	if err := run(e.write.sweepCancelled, e.clock.bootID, now.boot, sweepRows); err != nil {
		return err
	}
	// The age is counted from the token, not from its grant, so that even one
	// that was ahead of the clock is forgotten only TokenMemory behind it.
	old := int64(now.micros) - driver.TokenMemory.Microseconds()
	return run(e.write.sweepTokens, old, sweepRows)
}
