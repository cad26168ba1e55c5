package enginetest_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.caps, req); err != nil {
		switch {
		case e.fault == "unsupported mode is served as exclusive" && req.Mode != driver.Exclusive:
			req.Mode, req.Limit = driver.Exclusive, 0
		case e.fault == "unsupported queue is ignored" && req.Queue:
			req.Queue = false
		default:
			return driver.AcquireReply{}, err
		}
	}
	now, err := e.enter(ctx)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "strange names are refused" && strings.ContainsAny(req.Name, "\\") {
		return driver.AcquireReply{}, driver.ErrInvalid
	}
	if now.Before(e.tombstones[req.LeaseID]) {
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	}
	n := e.entry(req.Name, now)
	if len(n.leases) > 0 && (n.mode == driver.Semaphore || req.Mode == driver.Semaphore) &&
		(n.mode != req.Mode || n.limit != req.Limit) && e.fault != "kinds are not compared" {
		return driver.AcquireReply{}, fmt.Errorf("%w: the name is used otherwise", driver.ErrKindMismatch)
	}
	if l := e.find(n, req.LeaseID, "Acquire"); l != nil && e.fault != "repeat is refused" {
		return e.repeat(n, l, req, now), nil
	}
	free := e.fits(n, req)
	if e.fault == "check and record are two steps" {
		e.mu.Unlock()
		runtime.Gosched()
		time.Sleep(time.Millisecond)
		e.mu.Lock()
	}
	if !free {
		return e.refuse(n, req, now), nil
	}
	if req.MinToken > uint64(now.Add(driver.MaxTokenLead).UnixMicro()) && e.fault != "MinToken is not bounded" {
		return driver.AcquireReply{}, fmt.Errorf("%w MinToken: it is too far ahead", driver.ErrInvalid)
	}
	l := e.record(n, req, now, req.TTL)
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.Token}, nil
}

func (e *engine) repeat(n *entry, l *lease, req driver.AcquireRequest, now time.Time) driver.AcquireReply {
	switch expiry := now.Add(req.TTL); {
	case e.fault == "repeat shortens":
		l.expiry = expiry
	case e.fault == "repeat does not lengthen":
	case expiry.After(l.expiry):
		l.expiry = expiry
	}
	if e.fault == "repeat changes the token" {
		n.last++
		l.Token = n.last
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: l.Token}
}

func (e *engine) refuse(n *entry, req driver.AcquireRequest, now time.Time) driver.AcquireReply {
	reply := driver.AcquireReply{Outcome: driver.Held}
	if len(n.leases) > 0 {
		reply.Holder = e.describe(req.Name, n, now).Holders[0].Holder
		l := n.leases[0]
		if e.fault == "Inspect drops the holder" {
			reply.Holder = l.Holder
			reply.Holder.Labels = maps.Clone(l.Holder.Labels)
		}
		reply.ExpiresIn = l.expiry.Sub(now)
		switch e.fault {
		case "refusal drops the holder":
			reply.Holder = driver.Holder{}
		case "refusal drops the labels":
			reply.Holder.Labels = nil
		case "refusal says the whole TTL":
			reply.ExpiresIn = 8 * time.Second
		case "refusal says what is left in seconds":
			reply.ExpiresIn /= 1000
		case "refusal shows the token":
			reply.Token = l.Token
		}
	}
	if e.fault == "refusal lengthens the lease in the way" && req.TTL > 10*time.Second && !req.Queue {
		n.leases[0].expiry = now.Add(req.TTL)
	}
	if req.Queue || e.fault == "place without asking" {
		reply.Place = e.enqueue(n, req, now)
	}
	return reply
}

func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
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
		errs[i] = e.extend(req, now)
		if errs[i] != nil && e.fault == "batch ends at the first failure" || i == 99 && e.fault == "batch ends after 100" {
			for j := i + 1; j < len(reqs); j++ {
				errs[j] = driver.ErrLost
			}
			break
		}
	}
	if e.fault == "batch answers failures first" {
		slices.SortStableFunc(errs, func(a, b error) int {
			switch {
			case a != nil && b == nil:
				return -1
			case a == nil && b != nil:
				return 1
			}
			return 0
		})
	}
	return errs
}

func (e *engine) extend(req driver.ExtendRequest, now time.Time) error {
	n := e.entry(req.Name, now)
	l := e.find(n, req.LeaseID, "Extend")
	if l == nil && e.fault == "Extend re-creates a lost lease" && len(n.leases) == 0 && n.last > 0 {
		l = e.record(n, driver.AcquireRequest{Name: req.Name, LeaseID: req.LeaseID}, now, req.TTL)
	}
	if l == nil && e.fault == "errors carry the name" {
		return fmt.Errorf("%w: %s", driver.ErrLost, req.Name)
	}
	if l == nil {
		return driver.ErrLost
	}
	l.extended = true
	switch expiry := now.Add(req.TTL); {
	case e.fault == "Extend shortens":
		l.expiry = expiry
	case e.fault == "Extend does nothing" || !expiry.After(l.expiry):
	default:
		l.expiry = expiry
	}
	switch e.fault {
	case "Extend changes the token":
		n.last++
		l.Token = n.last
	case "Extend wakes the waiters":
		e.signal(req.Name)
	}
	return nil
}

func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	n := e.entry(req.Name, now)
	if e.fault != "place outlives the release" {
		n.queue = slices.DeleteFunc(n.queue, func(w *waiter) bool { return w.req.LeaseID == req.LeaseID })
	}
	l := e.find(n, req.LeaseID, "Release")
	if req.Cancel {
		e.bury(req, l != nil, now)
		if e.fault == "cancel ends whatever is there" {
			n.leases = nil
		}
		if l != nil && e.fault == "cancel leaves the lease" {
			return nil
		}
	}
	if l == nil && req.KeepFor > 0 && len(n.leases) == 0 && e.fault == "KeepFor closes a free name" {
		n.leases = append(n.leases, &lease{Holding: driver.Holding{Released: true}, expiry: now.Add(req.KeepFor)})
	}
	if l == nil {
		if e.fault == "release of a lost lease is no error" {
			return nil
		}
		return driver.ErrLost
	}
	if req.KeepFor > 0 && e.fault != "KeepFor is ignored" {
		l.Released, l.expiry = true, now.Add(req.KeepFor)
		if e.fault == "KeepFor is added to the lease" {
			l.expiry = l.expiry.Add(40 * time.Second)
		}
		return nil
	}
	if e.fault == "release of an extended lease does nothing" && l.extended {
		return nil
	}
	n.leases = slices.DeleteFunc(n.leases, func(other *lease) bool { return other == l })
	if e.fault == "release forgets the last token" {
		n.last = 0
	}
	if !req.Cancel || e.fault != "cancel wakes nobody" {
		e.signal(req.Name)
	}
	return nil
}

// bury leaves a tombstone for the lease ID of req.
func (e *engine) bury(req driver.ReleaseRequest, found bool, now time.Time) {
	switch {
	case e.fault == "no tombstone with KeepFor" && req.KeepFor > 0:
	case e.fault == "no tombstone":
	case e.fault == "tombstone only if nothing was found" && found:
	case e.fault == "tombstone only if there was a lease" && !found:
	case e.fault == "tombstone for half the time":
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL / 2)
	default:
		e.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
	}
}

// A watch is one caller's interest in one name.
type watch struct {
	engine *engine
	name   string
	c      chan struct{}
}

func (e *engine) Watch(ctx context.Context, name string) (driver.Watch, error) {
	if _, err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	w := &watch{engine: e, name: name, c: make(chan struct{}, 1)}
	if e.fault == "signals pile up" {
		w.c = make(chan struct{}, 100)
	}
	e.watches[w] = true
	return w, nil
}

// signal tells the watches of name; e.mu is guaranteed to be held.
func (e *engine) signal(name string) {
	if e.fault == "wake-ups are lost" {
		return
	}
	for w := range e.watches {
		if w.name != name || e.fault == "wake-ups stay in the engine" && w.engine != e {
			continue
		}
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Stop() {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	if w.engine.fault == "Stop stops every watch of the name" {
		for other := range w.engine.watches {
			if other.name == w.name {
				delete(w.engine.watches, other)
			}
		}
	}
	if w.engine.fault != "Stop does nothing" {
		delete(w.engine.watches, w)
	}
}
