package eventdoor

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// ringSize is how many events a server remembers, for readers that reconnect.
const ringSize = 10_000

// A ring has the latest events of the store, in the order of the engine. INVARIANT I11: the
// server keeps only the ring and a few chunks, for any number of readers.
type ring struct {
	began  time.Time
	mu     sync.Mutex
	size   uint64
	events []entry           // number n is at n % size
	first  uint64            // the number of the oldest
	next   uint64            // the number of the next event
	byID   map[string]uint64 // the numbers of the events in the ring
	more   chan struct{}     // closed when there is another event
	chunks []*chunk          // the latest
	press  press

	readers atomic.Int64
}

// step returns the time between two writes to each reader.
func (g *ring) step() time.Duration {
	return min(max(pause, time.Duration(g.readers.Load())*pauseEach), pauseMost)
}

const (
	// chunkMost is how many events there are in a chunk, and keptChunks how many chunks are
	// kept for readers a little slower than the first: a few megabytes.
	chunkMost  = 2048
	keptChunks = 4

	// fresh is how long the ages of the events in a chunk are accurate enough.
	fresh = 4 * pause
)

// A chunk is the text of some events for all readers that see all names and are at the same
// event. The first of them makes it. It is read-only.
type chunk struct {
	from, to uint64
	last     bool // there were no more events when it was made
	made     time.Time
	text     []byte
	blocks   func() []byte // returns the text for readers that accept gzip
}

// An entry is an event, and when it came from the engine.
type entry struct {
	lockinfo.HistoryEvent
	heard time.Time
	text  *text // nil if the entry is not in a ring
}

// A text is an event as readers get it, without its age. The first reader makes it.
type text struct {
	once       sync.Once
	head, tail []byte // the age is between them
}

// appendTo appends an event as readers get it.
func (e *entry) appendTo(all []byte, now time.Time) []byte {
	if e.ID == "" {
		return append(all, gapText...)
	}
	t := e.text
	t.once.Do(func() {
		young := e.HistoryEvent
		young.Ago = 0
		data, err := json.Marshal(wire.HistoryEventOf(young))
		if err != nil {
			panic(err) // it has only strings and numbers
		}
		head, tail, _ := bytes.Cut(data, []byte(noAge)) // in a string the quotes would be escaped
		t.head = slices.Concat([]byte("id: "+e.ID+"\ndata: "), head, []byte(noAge[:len(noAge)-1]))
		t.tail = append(tail, "\n\n"...)
	})
	all = strconv.AppendInt(append(all, t.head...), (e.Ago + now.Sub(e.heard)).Milliseconds(), 10)
	return append(all, t.tail...)
}

const noAge = `"ago_ms":0`

func newRing(size uint64) *ring {
	return &ring{began: time.Now(), size: size, byID: map[string]uint64{}, more: make(chan struct{})}
}

// add adds an event of the engine, and reports whether it is new: the engine may report one
// twice.
func (g *ring) add(e lockinfo.HistoryEvent) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.ID != "" {
		if _, twice := g.byID[e.ID]; twice {
			return false
		}
		g.byID[e.ID] = g.next
	}
	new := entry{e, time.Now(), &text{}}
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

// place returns the number of the event after the one with this ID. If the ring does not
// have it, the number is of the oldest event. An empty ID means the latest event.
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

// from returns up to n events from the number *at on, advances *at, and returns a channel
// that is closed when there are more. gap reports that the ring has lost some of the events
// that should follow.
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

// all does as from, for readers that see all names. It returns the next chunk, or nil if there
// are no more events. whole reports that the reader should wait for more.
//
// Readers that call all at about the same time must stop at the same event, even if new events
// arrive meanwhile. So all chunks of that time end where the first of them ends, wherever they
// begin.
func (g *ring) all(at *uint64) (c *chunk, whole bool, more <-chan struct{}, gap bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gap = *at < g.first; gap {
		*at = g.first
	}
	to, now := min(g.next, *at+chunkMost), time.Now()
	if to == *at {
		return nil, true, g.more, gap
	}
	last := to == g.next
	for _, other := range g.chunks {
		switch young := now.Sub(other.made) <= fresh; {
		case young && other.from == *at:
			c = other
		case young && other.to > *at && other.to <= to:
			to, last = other.to, other.last
		}
	}
	if c == nil {
		c = &chunk{from: *at, to: to, last: last, made: now}
		for n := c.from; n < to; n++ {
			if e := &g.events[n%g.size]; !hidden(e.Name) {
				c.text = e.appendTo(c.text, now)
			}
		}
		c.blocks = sync.OnceValue(func() []byte { return g.press.press(c.text) })
		if len(g.chunks) == keptChunks {
			g.chunks = slices.Delete(g.chunks, 0, 1)
		}
		g.chunks = append(g.chunks, c)
	}
	*at = c.to
	return c, c.to == g.next || c.last && now.Sub(c.made) < g.step(), g.more, gap
}
