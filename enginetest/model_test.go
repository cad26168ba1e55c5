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

// A store is the state that engines of the model share. With an empty fault it follows the whole
// contract. Any other fault names the one rule that it breaks. Each fault is one condition at the
// place that enforces the rule.
type store struct {
	fault string
	caps  driver.Capabilities

	// Choices that the contract allows. Eager: every method notices expiries, not only Acquire and
	// Refresh. Chatty: all notices arrive late and twice, with requests to look in between. Narrow:
	// AcquireAll needs names with a tag. Tidy: one-time tokens need no Prune. Tokenless: the server
	// turns out to support no one-time tokens.
	eager, chatty, narrow, tidy, tokenless bool

	mu         sync.Mutex // guards the rest
	names      map[string]*entry
	tombstones map[lockinfo.LeaseID]time.Time
	watches    map[*watch]bool
	deposits   map[string]*deposit
	listeners  []*listener
	chronicle
	told      int  // how many messages were sent, if chatty
	allAtOnce bool // AcquireAll is under way, for faults
}

// An entry is the state of one name.
type entry struct {
	name   string
	events []written // the oldest first
	last   uint64
	mode   lockinfo.Mode // the mode of the leases
	leases []*lease
	queue  []*place
	record *record
	broken []broken // the latest last
	leaked int      // permits that are never released, for a fault
}

// A lease is a granted request.
type lease struct {
	req      driver.AcquireRequest
	token    uint64
	granted  time.Time
	expiry   time.Time
	released bool
	extended bool
	by       *engine // the engine that granted it, for a fault
}

// A place is a waiting request.
type place struct {
	req   driver.AcquireRequest
	since time.Time
	until time.Time
	by    *engine // the engine of the first request, for a fault
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

// enter locks the store and returns the present time. If it returns an error, the store is not
// locked.
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

// enterFor is enter for a method that needs a flag. Without the flag it does not use the store.
func (e *engine) enterFor(ctx context.Context, flag bool, method string) (time.Time, error) {
	err := e.unsupported(flag, method)
	if err == nil || e.fault == method+" asks the store first" && ctx.Err() != nil {
		return e.enter(ctx)
	}
	return time.Time{}, err
}

// unsupported returns an error unless flag, which method needs, is set.
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

// purged returns the present state of name, without everything that has ended.
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

// ended reports whether l, a lease of n, has expired.
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

// settled returns the present state of name after it has handed the lock over to the waiters whose
// turn it is.
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

// looked returns the present state of name for a method that need not hand the lock over.
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

// find returns the live lease of id for a method, or nil.
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

// end removes a lease.
func (s *store) end(n *entry, l *lease) {
	n.leases = slices.DeleteFunc(n.leases, func(other *lease) bool { return other == l })
}
