package enginetest_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A store is what engines of the model have in common. With fault empty it
// keeps the whole contract; any other value names the one rule it breaks.
// Each fault is one condition at the place that keeps the rule.
type store struct {
	fault   string
	caps    driver.Capabilities
	handOff bool // Release grants the lock to the head of the queue itself

	mu         sync.Mutex // guards the rest
	names      map[string]*entry
	tombstones map[driver.LeaseID]time.Time
	watches    map[*watch]bool
}

// An entry is what the store has under one name.
type entry struct {
	mode   driver.Mode
	limit  int
	last   uint64
	leases []*lease
	queue  []*waiter
}

type lease struct {
	driver.Holding
	expiry   time.Time
	extended bool
}

// A waiter is a place in a queue; req is the latest request for it.
type waiter struct {
	req   driver.AcquireRequest
	until time.Time
}

func newStore(fault string, caps driver.Capabilities) *store {
	return &store{
		fault: fault, caps: caps,
		names:      map[string]*entry{},
		tombstones: map[driver.LeaseID]time.Time{},
		watches:    map[*watch]bool{},
	}
}

// entry returns the state of name as of now: without what has ended.
func (s *store) entry(name string, now time.Time) *entry {
	e := s.names[s.key(name)]
	if e == nil {
		e = &entry{}
		s.names[s.key(name)] = e
	}
	e.leases = slices.DeleteFunc(e.leases, func(l *lease) bool { return s.ended(e, l, now) })
	if s.fault != "places are never given up" {
		e.queue = slices.DeleteFunc(e.queue, func(w *waiter) bool { return !now.Before(w.until) })
	}
	if s.handOff && len(e.leases) == 0 && len(e.queue) > 0 {
		head := e.queue[0]
		e.queue = e.queue[1:]
		s.record(e, head.req, now, head.req.WaiterTTL)
	}
	return e
}

// ended reports whether l, a lease of e, is over.
func (s *store) ended(e *entry, l *lease, now time.Time) bool {
	if now.Before(l.expiry) ||
		s.fault == "exclusive leases never expire" && e.mode == driver.Exclusive && !l.Released ||
		s.fault == "other leases never expire" && e.mode != driver.Exclusive ||
		s.fault == "KeepFor never ends" && l.Released {
		return false
	}
	if s.fault == "expiry forgets the last token" && !l.Released || s.fault == "KeepFor forgets the last token" && l.Released {
		e.last = 0
	}
	return true
}

func (s *store) key(name string) string {
	switch s.fault {
	case "names are folded":
		return strings.ToLower(name)
	case "names are cut":
		return name[:min(len(name), 255)]
	case "braces are cut to the hash tag":
		if i := strings.IndexByte(name, '{'); i >= 0 {
			if j := strings.IndexByte(name[i:], '}'); j > 1 {
				return name[i+1 : i+j]
			}
		}
	}
	return name
}

// find returns the lease that id may extend and release.
func (s *store) find(e *entry, id driver.LeaseID, method string) *lease {
	for _, l := range e.leases {
		same := l.LeaseID == id
		if s.fault == method+" compares half the ID" {
			same = l.LeaseID[:16] == id[:16]
		}
		if s.fault == method+" ignores the ID" {
			same = true
		}
		if same && (!l.Released || s.fault == "KeepFor leaves the lease live" && method == "Extend" ||
			s.fault == "repeated release lengthens KeepFor" && method == "Release") {
			return l
		}
	}
	return nil
}

// fits reports whether a request may be granted beside the leases of e.
func (s *store) fits(e *entry, req driver.AcquireRequest) bool {
	if len(e.queue) > 0 && e.queue[0].req.LeaseID != req.LeaseID && s.fault != "queue is not in order" {
		return false
	}
	switch {
	case len(e.leases) == 0:
		return true
	case slices.ContainsFunc(e.leases, func(l *lease) bool { return l.Released }):
		return s.fault == "KeepFor is ignored for others"
	case e.mode == driver.Shared && req.Mode == driver.Shared:
		return s.fault != "one shared lease at a time"
	case e.mode == driver.Shared:
		return s.fault == "exclusive beside shared"
	case req.Mode == driver.Shared:
		return s.fault == "shared beside exclusive"
	case e.mode == driver.Semaphore:
		return len(e.leases) < e.limit || s.fault == "semaphore has one permit too many" && len(e.leases) == e.limit
	}
	return s.fault == "grants over a lease that was extended" && e.leases[0].extended
}

// record grants req for ttl.
func (s *store) record(e *entry, req driver.AcquireRequest, now time.Time, ttl time.Duration) *lease {
	token := max(e.last+1, uint64(now.UnixMicro()))
	if s.fault == "token is a counter" {
		token = e.last + 1
	}
	if s.fault != "MinToken is ignored" {
		token = max(token, req.MinToken+1)
	}
	if s.fault == "tokens are all alike" {
		token = 1
	}
	if s.fault == "token is beyond MaxToken" {
		token += driver.MaxToken
	}
	if s.fault == "expires a tenth early" {
		ttl = ttl * 9 / 10
	}
	if len(e.leases) == 0 {
		e.mode, e.limit = req.Mode, req.Limit
	}
	holder := req.Holder
	if s.fault != "holder is not copied" {
		holder.Labels = maps.Clone(holder.Labels)
	}
	l := &lease{
		Holding: driver.Holding{LeaseID: req.LeaseID, Token: token, Holder: holder},
		expiry:  now.Add(ttl),
	}
	e.leases = append(e.leases, l)
	if s.fault != "lift is forgotten" || req.MinToken == 0 {
		e.last = max(e.last, token)
	}
	e.queue = slices.DeleteFunc(e.queue, func(w *waiter) bool { return w.req.LeaseID == req.LeaseID })
	return l
}

// enqueue keeps a place for req and returns it.
func (s *store) enqueue(e *entry, req driver.AcquireRequest, now time.Time) int {
	i := slices.IndexFunc(e.queue, func(w *waiter) bool { return w.req.LeaseID == req.LeaseID })
	if i >= 0 && s.fault == "repeat goes to the end of the queue" {
		e.queue = slices.Delete(e.queue, i, i+1)
		i = -1
	}
	if i < 0 {
		i = len(e.queue)
		e.queue = append(e.queue, &waiter{req: req, until: now.Add(req.WaiterTTL)})
	}
	if s.fault != "place is not renewed" {
		e.queue[i].until = now.Add(req.WaiterTTL)
	}
	return i + 1
}

// describe returns what Inspect says of e.
func (s *store) describe(name string, e *entry, now time.Time) driver.Lock {
	lock := driver.Lock{Name: name, Mode: e.mode, LastToken: e.last}
	if s.fault == "Inspect forgets the token of a free name" && len(e.leases) == 0 {
		lock.LastToken = 0
	}
	for _, l := range e.leases {
		h := l.Holding
		h.ExpiresIn = l.expiry.Sub(now)
		switch s.fault {
		case "Inspect drops the holder":
			h.Holder = driver.Holder{}
		case "Inspect drops the token":
			h.Token = 0
		}
		if s.fault != "holder is not copied" {
			h.Holder.Labels = maps.Clone(h.Holder.Labels)
		}
		lock.Holders = append(lock.Holders, h)
	}
	return lock
}

// An engine is one connection to a store.
type engine struct {
	*store
	closed bool // guarded by store.mu
}

// enter locks the store and returns the present time, or fails without.
func (e *engine) enter(ctx context.Context) (time.Time, error) {
	if ctx.Err() != nil && e.fault != "ended context is ignored" {
		return time.Time{}, ctx.Err()
	}
	e.mu.Lock()
	if e.closed && e.fault != "closed engine serves on" {
		e.mu.Unlock()
		return time.Time{}, fmt.Errorf("the engine was %w", driver.ErrClosed)
	}
	return time.Now(), nil
}

func (e *engine) Capabilities() driver.Capabilities { return e.caps }

func (e *engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed && e.fault == "second Close fails" {
		return driver.ErrClosed
	}
	e.closed = true
	if e.fault == "Close ends the leases" {
		for _, n := range e.names {
			n.leases = nil
		}
	}
	return nil
}

func (e *engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return driver.Lock{}, err
	}
	defer e.mu.Unlock()
	if e.fault == "Inspect of a free name fails" && e.names[e.key(name)] == nil {
		return driver.Lock{}, driver.ErrLost
	}
	return e.describe(name, e.entry(name, now), now), nil
}

func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		now, err := e.enter(ctx)
		if err != nil {
			if e.fault != "List swallows errors" {
				yield(driver.Lock{}, err)
			}
			return
		}
		var locks []driver.Lock
		for _, name := range slices.Collect(maps.Keys(e.names)) {
			n := e.entry(name, now)
			if (len(n.leases) > 0 || e.fault == "List shows free names") && e.matches(name, prefix) {
				locks = append(locks, e.describe(name, n, now))
			}
		}
		if e.fault == "List yields one twice" && len(locks) > 100 {
			locks = append(locks, locks[0])
		}
		e.mu.Unlock()
		for _, l := range locks {
			if !yield(l, nil) && e.fault != "List does not stop" {
				return
			}
		}
	}
}

func (s *store) matches(name, prefix string) bool {
	switch s.fault {
	case "List ignores the prefix":
		return true
	case "List takes ? for any character":
		return matchesAny(name, prefix)
	case "List is not sensitive to case":
		return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
	}
	return strings.HasPrefix(name, prefix)
}

// matchesAny compares as a pattern would in which ? stands for any character.
func matchesAny(name, prefix string) bool {
	for i := range len(prefix) {
		if i >= len(name) || prefix[i] != '?' && name[i] != prefix[i] {
			return false
		}
	}
	return true
}
