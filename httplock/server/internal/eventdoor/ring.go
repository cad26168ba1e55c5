package eventdoor

import (
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// ringSize is how many events a server remembers, for readers that come back.
const ringSize = 10_000

// A ring has the latest events of the store, in the order in which the engine told of
// them. INVARIANT I11: it is all that is kept of them, however many read it.
type ring struct {
	mu     sync.Mutex
	size   uint64
	events []entry           // number n is at n % size
	first  uint64            // the number of the oldest
	next   uint64            // of the event that comes next
	byID   map[string]uint64 // those that are in the ring
	more   chan struct{}     // closed when there is another event
}

// An entry is an event, and when the engine told of it: it goes on ageing.
type entry struct {
	driver.Event
	heard time.Time
}

func newRing(size uint64) *ring {
	return &ring{size: size, byID: map[string]uint64{}, more: make(chan struct{})}
}

// add adds an event that the engine tells of, and reports whether it is new: the engine may
// tell of one twice.
func (g *ring) add(e driver.Event) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.ID != "" {
		if _, twice := g.byID[e.ID]; twice {
			return false
		}
		g.byID[e.ID] = g.next
	}
	new := entry{e, time.Now()}
	if g.next < g.size {
		g.events = append(g.events, new)
	} else {
		at := g.next % g.size
		delete(g.byID, g.events[at].ID)
		g.events[at] = new
		g.first++
	}
	g.next++
	close(g.more)
	g.more = make(chan struct{})
	return true
}

// place returns the number of the event behind the one that has this ID. It is not known
// if the ring does not have it: then the oldest comes next. An empty ID is that of the
// latest event.
func (g *ring) place(id string) (at uint64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id == "" {
		return g.next, true
	}
	if at, known = g.byID[id]; known {
		return at + 1, true
	}
	return g.first, false
}

// from returns up to n events from the number *at on, which it moves behind them, and a
// channel that is closed when there are more. gap says that the ring has lost some of those
// that were to come.
func (g *ring) from(at *uint64, n int) (some []entry, more <-chan struct{}, gap bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gap = *at < g.first; gap {
		*at = g.first
	}
	for ; *at < g.next && len(some) < n; *at++ {
		some = append(some, g.events[*at%g.size])
	}
	return some, g.more, gap
}
