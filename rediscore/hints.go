package rediscore

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

const (
	// contendedFor is how long requests about a contended name skip the fast path at
	// once: a plain request before it would be in vain.
	contendedFor = 10 * time.Second
	// severalFor is the same for a name with shared leases or permits. They are
	// renewed every few seconds, which reminds of it.
	severalFor = time.Minute
)

// hints remember names whose fast path failed a short
// while ago. Their memory is bounded: of names that share a slot of it the last one has
// it. A wrong or forgotten hint costs time, and nothing else.
type hints struct {
	last  uint32 // in ticks
	since time.Time
	seed  maphash.Seed
	noted [1024]atomic.Uint64 // a part of the name's hash, and the tick
}

const tick = 10 * time.Millisecond

func newHints(last time.Duration) *hints {
	return &hints{last: uint32(last / tick), since: time.Now(), seed: maphash.MakeSeed()}
}

// of returns the place of a name, and the part of its hash that is noted there.
func (h *hints) of(name string) (place *atomic.Uint64, part uint64) {
	hash := maphash.String(h.seed, name)
	return &h.noted[hash%uint64(len(h.noted))], hash >> 32
}

// now counts ticks, from so many on that at first nothing has been noted.
func (h *hints) now() uint32 { return uint32(time.Since(h.since)/tick) + h.last + 1 }

func (h *hints) note(name string) {
	place, part := h.of(name)
	place.Store(part<<32 | uint64(h.now()))
}

func (h *hints) has(name string) bool {
	place, part := h.of(name)
	then := place.Load()
	return then>>32 == part && h.now()-uint32(then) < h.last
}
