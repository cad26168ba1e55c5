// Package toyengine is an engine on a plain map, written by docs/internals/engines.md to show how
// little an engine needs with packages rules and mailbox. The comments name the steps of
// that page. Package memlock is the engine in memory for real use: it can do more, and
// forgets names that are no longer used.
package toyengine

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Store has the locks. Engines are opened on it, as clients are on a server. Use New to make one.
// Step 1: its mutex makes a step atomic, time.Now is its clock, and its mailbox delivers notices to
// the waiters of all its engines.
type Store struct {
	box   mailbox.Box[struct{}]
	mu    sync.Mutex // guards the rest
	locks map[string]*lock
}

// A lock is the state of one name.
type lock struct {
	last      uint64                         // token
	leases    []*entry                       // in the order of their grants
	queue     []*entry                       // in the order of their first requests
	cancelled map[lockinfo.LeaseID]time.Time // until when
}

// An entry is a lease, or a place, until it ends.
type entry struct {
	driver.AcquireRequest
	since, ends time.Time
	token       uint64
	released    bool // has ended, and KeepFor keeps the name closed
}

// New returns an empty store.
func New() *Store { return &Store{locks: map[string]*lock{}} }

// An Engine is one connection to a store.
type Engine struct {
	store  *Store
	closed atomic.Bool
}

// Open returns an engine on the store.
func (s *Store) Open() *Engine { return &Engine{store: s} }

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{Shared: true, Semaphore: true, Queue: true, List: true}
}

// Close implements driver.Engine. Step 3: it leaves all leases alone.
func (e *Engine) Close() error {
	e.closed.Store(true)
	return nil
}

// step calls do with the lock of a name, which do may change, in one step of the store.
func (e *Engine) step(ctx context.Context, name string, do func(l *lock, now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.closed.Load() {
		return fmt.Errorf("the engine was %w", driver.ErrClosed)
	}
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[name] == nil {
		s.locks[name] = &lock{cancelled: map[lockinfo.LeaseID]time.Time{}}
	}
	l, now := s.locks[name], time.Now()
	l.settle(now, &s.box)
	err := do(l, now)
	l.settle(now, &s.box)
	return err
}

// settle removes leases and places that have ended, and hands the lock over while it is due: Step
// 9.
func (l *lock) settle(now time.Time, box *mailbox.Box[struct{}]) {
	over := func(x *entry) bool { return !now.Before(x.ends) }
	l.leases, l.queue = slices.DeleteFunc(l.leases, over), slices.DeleteFunc(l.queue, over)
	maps.DeleteFunc(l.cancelled, func(_ lockinfo.LeaseID, until time.Time) bool { return !now.Before(until) })
	for v, _ := l.view("", now); v.Due(); v, _ = l.view("", now) {
		p := l.queue[0]
		token, err := l.grant(p.AcquireRequest, rules.LeastToken(clock(now), p.MinToken), now, p.ends)
		if err != nil {
			return // no token is left: Judge refuses from now on
		}
		l.queue = l.queue[1:]
		box.Tell(p.LeaseID, driver.Notice{Token: token})
	}
}

// view returns the input of the rules for a request of id, and the lease that ends first. Step 3.
func (l *lock) view(id lockinfo.LeaseID, now time.Time) (v rules.View, first lockinfo.Holding) {
	_, v.Cancelled = l.cancelled[id]
	v.Own = l.held(id) != nil
	v.Placed = l.refresh(id, now) > 0
	for _, h := range l.leases {
		if v.AddLease(h.Mode, h.ends.Sub(now)) {
			first = h.describe(now)
		}
	}
	for _, p := range l.queue {
		v.AddPlace(p.Mode, false, p.ends.Sub(now))
	}
	return v, first
}

// grant records a lease. Step 6.
func (l *lock) grant(req driver.AcquireRequest, least uint64, now, ends time.Time) (token uint64, err error) {
	if token, err = rules.NextToken(l.last, least); err == nil {
		l.last = token
		l.leases = append(l.leases, &entry{AcquireRequest: req, token: token, since: now, ends: ends})
	}
	return token, err
}

// describe returns the description of a lease for people. Step 3.
func (x *entry) describe(now time.Time) lockinfo.Holding {
	return lockinfo.Holding{LeaseID: x.LeaseID, Token: x.token, Mode: x.Mode, Holder: clone(x.Holder),
		Since: now.Sub(x.since), ExpiresIn: x.ends.Sub(now), Released: x.released}
}

// held returns the live lease of id, or nil.
func (l *lock) held(id lockinfo.LeaseID) *entry {
	i := slices.IndexFunc(l.leases, func(h *entry) bool { return h.LeaseID == id && !h.released })
	if i < 0 {
		return nil
	}
	return l.leases[i]
}

// refresh lengthens the place of id and returns its rank, or 0 if there is no place.
func (l *lock) refresh(id lockinfo.LeaseID, ends time.Time) (rank int) {
	i := slices.IndexFunc(l.queue, func(p *entry) bool { return p.LeaseID == id })
	if i >= 0 {
		l.queue[i].lengthen(ends)
	}
	return i + 1
}

// lengthen moves the end of a lease or a place, but never to an earlier time.
func (x *entry) lengthen(ends time.Time) {
	if ends.After(x.ends) {
		x.ends = ends
	}
}

// Acquire implements driver.Engine. Steps 3 and 5.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return reply, err
	}
	req.Holder = clone(req.Holder)
	err = e.step(ctx, req.Name, func(l *lock, now time.Time) error {
		v, first := l.view(req.LeaseID, now)
		outcome, least, err := v.Judge(&req, clock(now))
		switch h := l.held(req.LeaseID); {
		case err != nil:
			return err
		case outcome == driver.Granted && v.Own:
			h.lengthen(now.Add(req.TTL))
			reply.Token = h.token
		case outcome == driver.Granted:
			reply.Token, err = l.grant(req, least, now, now.Add(req.TTL))
		case outcome == driver.Held:
			place := l.refresh(req.LeaseID, now.Add(req.WaiterTTL))
			if place == 0 && req.Queue { // step 9
				l.queue = append(l.queue, &entry{AcquireRequest: req, since: now, ends: now.Add(req.WaiterTTL)})
				place = len(l.queue)
			}
			reply.Blocker = v.Blocker(first, place, len(l.queue))
		}
		reply.Outcome = outcome
		return err
	})
	return reply, err
}

// Extend implements driver.Engine. Step 5.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	for i, req := range reqs {
		errs[i] = e.lease(ctx, req.Name, req.LeaseID, req.Token, func(h *entry, now time.Time) { h.lengthen(now.Add(req.TTL)) })
	}
	return errs
}

// lease calls do with the live lease of id and token, or of any token if token is 0, in one step.
func (e *Engine) lease(ctx context.Context, name string, id lockinfo.LeaseID, token uint64, do func(h *entry, now time.Time)) error {
	return e.step(ctx, name, func(l *lock, now time.Time) error {
		h := l.held(id)
		if h == nil || token != 0 && token != h.token {
			return driver.ErrLost
		}
		do(h, now)
		return nil
	})
}

// Release implements driver.Engine. Step 4.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return e.step(ctx, req.Name, func(l *lock, now time.Time) error {
		if req.Cancel {
			l.cancelled[req.LeaseID] = now.Add(driver.TombstoneTTL)
		}
		l.queue = slices.DeleteFunc(l.queue, func(p *entry) bool { return p.LeaseID == req.LeaseID })
		h := l.held(req.LeaseID)
		if h == nil {
			return driver.ErrLost
		}
		h.released, h.ends = true, now.Add(req.KeepFor)
		return nil
	})
}

// Downgrade implements driver.Downgrader. Step 8.
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return e.lease(ctx, req.Name, req.LeaseID, 0, func(h *entry, _ time.Time) {
		if h.Mode == lockinfo.Exclusive {
			h.Mode = lockinfo.Shared
		}
	})
}

// Watch implements driver.Queuer. Step 9.
func (e *Engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.store.box.Watch(id) }

// Refresh implements driver.Queuer. Step 9.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	for i, req := range reqs {
		r := &replies[i]
		r.Err = e.step(ctx, req.Name, func(l *lock, now time.Time) error {
			h, place := l.held(req.LeaseID), l.refresh(req.LeaseID, now.Add(req.WaiterTTL))
			switch v, first := l.view(req.LeaseID, now); {
			case h != nil:
				r.Outcome, r.Token = driver.Granted, h.token
			case place > 0 && req.WaiterTTL == 0:
				l.queue = slices.Delete(l.queue, place-1, place)
				r.Blocker = v.Blocker(first, 0, len(l.queue))
			case place > 0:
				r.Blocker = v.Blocker(first, place, len(l.queue))
			default:
				return driver.ErrLost
			}
			return nil
		})
	}
	return replies
}

// Inspect implements driver.Engine. Step 3.
func (e *Engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	shown := lockinfo.LockState{Name: name}
	err := e.step(ctx, name, func(l *lock, now time.Time) error {
		shown.LastToken, shown.QueueLength = l.last, len(l.queue)
		for _, h := range l.leases {
			shown.Mode = shown.Mode.Plus(h.Mode)
			shown.Holders = append(shown.Holders, h.describe(now))
		}
		for _, p := range l.queue {
			shown.Queue = append(shown.Queue, lockinfo.Place{LeaseID: p.LeaseID, Mode: p.Mode,
				Holder: clone(p.Holder), Since: now.Sub(p.since), ExpiresIn: p.ends.Sub(now)})
		}
		return nil
	})
	return shown, err
}

// List implements driver.Lister. Step 7.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		e.store.mu.Lock()
		names := slices.Collect(maps.Keys(e.store.locks))
		e.store.mu.Unlock()
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			l, err := e.Inspect(ctx, name)
			if used := len(l.Holders)+l.QueueLength > 0; (used || err != nil) && !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// clock returns the store's time in the unit of tokens.
func clock(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// clone returns a copy that shares no labels with h. Step 3.
func clone(h lockinfo.Holder) lockinfo.Holder {
	h.Labels = maps.Clone(h.Labels)
	return h
}
