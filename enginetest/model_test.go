package enginetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A store is what engines of the model have in common. With fault empty it
// keeps the whole contract; any other value names the one rule it breaks.
// Each fault is one condition at the place that keeps the rule.
type store struct {
	fault string
	caps  driver.Capabilities

	// What the contract leaves open. Eager: every method notices expiries, not
	// only Acquire and Refresh. Chatty: all news comes some time later and
	// twice, with calls to look between. Narrow: AcquireAll needs names with a
	// tag. Tidy: one-time tokens need no Prune. Tokenless: the server turns out
	// to keep none.
	eager, chatty, narrow, tidy, tokenless bool

	mu         sync.Mutex // guards the rest
	names      map[string]*entry
	tombstones map[lockinfo.LeaseID]time.Time
	watches    map[*watch]bool
	deposits   map[string]*deposit
	listeners  []*listener
	chronicle
	told      int  // how many messages were sent, if chatty
	allAtOnce bool // AcquireAll is under way, for its faults
}

// An entry is what the store has under one name.
type entry struct {
	name   string
	events []written // the oldest first
	last   uint64
	mode   lockinfo.Mode // of the leases
	leases []*lease
	queue  []*place
	record *record
	broken []broken // the latest last
	leaked int      // permits that never come back, for the fault
}

// A lease is a request that was granted.
type lease struct {
	req      driver.AcquireRequest
	token    uint64
	granted  time.Time
	expiry   time.Time
	released bool
	extended bool
	by       *engine // which granted it, for its fault
}

// A place is a request that waits.
type place struct {
	req   driver.AcquireRequest
	since time.Time
	until time.Time
	by    *engine // which asked first, for its fault
}

func newStore(fault string, caps driver.Capabilities) *store {
	return &store{
		fault: fault, caps: caps,
		names:      map[string]*entry{},
		tombstones: map[lockinfo.LeaseID]time.Time{},
		watches:    map[*watch]bool{},
		deposits:   map[string]*deposit{},
	}
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
	e.by = e
	return time.Now(), nil
}

// enterFor is enter for a method that needs a flag. Without it the store is not
// asked.
func (e *engine) enterFor(ctx context.Context, flag bool, method string) (time.Time, error) {
	err := e.unsupported(flag, method)
	if err == nil || e.fault == method+" asks the store first" && ctx.Err() != nil {
		return e.enter(ctx)
	}
	return time.Time{}, err
}

// unsupported returns an error unless flag is set, which method needs.
func (s *store) unsupported(flag bool, method string) error {
	if flag || s.fault == method+" needs no flag" {
		return nil
	}
	return fmt.Errorf("%s is %w", method, driver.ErrUnsupported)
}

func (e *engine) Capabilities() driver.Capabilities {
	if e.fault == "capabilities change" {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.names) > 0 {
			return driver.Capabilities{}
		}
	}
	return e.caps
}

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
	if e.fault == "Close closes the watches" {
		for w := range e.watches {
			close(w.c)
			delete(e.watches, w)
		}
	}
	return nil
}

// purged returns the state of name as of now: without what has ended.
func (s *store) purged(name string, now time.Time) *entry {
	n := s.names[s.key(name)]
	if n == nil {
		n = &entry{name: name}
		s.names[s.key(name)] = n
	}
	live := slices.ContainsFunc(n.leases, func(l *lease) bool { return now.Before(l.expiry) })
	n.leases = slices.DeleteFunc(n.leases, func(l *lease) bool {
		if s.fault == "dead reader stays as long as any" && n.mode == lockinfo.Shared && live {
			return false
		}
		over := s.ended(n, l, now)
		if over && !l.released {
			s.noteLease(lockinfo.HistoryExpired, n, l, now)
		}
		return over
	})
	if s.fault != "places are never given up" && s.fault != "place that is over is handed the lock" {
		n.queue = slices.DeleteFunc(n.queue, func(p *place) bool {
			over := !now.Before(p.until)
			if over && s.fault != "place that is over leaves unseen" {
				s.notePlace(lockinfo.HistoryGaveUp, n, p, now)
			}
			return over
		})
	}
	s.forgetEvents(n, now)
	if n.record != nil && !now.Before(n.record.expiry) && s.fault != "retention never ends" {
		n.record = nil
	}
	s.forgetBreaks(n, now)
	return n
}

// ended reports whether l, a lease of n, is over.
func (s *store) ended(n *entry, l *lease, now time.Time) bool {
	if now.Before(l.expiry) ||
		s.fault == "exclusive leases never expire" && n.mode == lockinfo.Exclusive && !l.released ||
		s.fault == "other leases never expire" && n.mode != lockinfo.Exclusive ||
		s.fault == "KeepFor never ends" && l.released {
		return false
	}
	switch s.fault {
	case "expiry forgets the last token":
		if !l.released {
			n.last = 0
		}
	case "KeepFor forgets the last token":
		if l.released {
			n.last = 0
		}
	case "permits of an expired lease leak":
		n.leaked += l.req.Mode.Permits()
	}
	return true
}

// settled returns the state of name as of now, with the lock handed over to
// whose turn it is.
func (e *engine) settled(name string, now time.Time) *entry {
	n := e.purged(name, now)
	if e.fault == "place that is over is handed the lock" {
		defer func() {
			n.queue = slices.DeleteFunc(n.queue, func(p *place) bool { return !now.Before(p.until) })
		}()
	}
	if e.fault != "expiry is left to the next comer" {
		e.serve(n, now)
	}
	return n
}

// looked is settled for a method that need not notice an expiry.
func (e *engine) looked(name string, now time.Time) *entry {
	if e.eager {
		return e.settled(name, now)
	}
	return e.purged(name, now)
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

// find returns the live lease of id for a method.
func (s *store) find(n *entry, id lockinfo.LeaseID, method string) *lease {
	for _, l := range n.leases {
		if !s.same(l.req.LeaseID, id, method) {
			continue
		}
		if !l.released || s.fault == "KeepFor leaves the lease live to "+method ||
			s.fault == "repeated release lengthens KeepFor" && method == "Release" {
			return l
		}
	}
	return nil
}

// same compares two lease IDs for a method.
func (s *store) same(a, b lockinfo.LeaseID, method string) bool {
	switch s.fault {
	case method + " compares half the ID":
		return a[:16] == b[:16]
	case method + " ignores the ID":
		return true
	}
	return a == b
}

// end takes a lease out.
func (s *store) end(n *entry, l *lease) {
	n.leases = slices.DeleteFunc(n.leases, func(other *lease) bool { return other == l })
}
