package rediscore

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

const (
	// contendedFor is how long requests for a contended name skip the plain script and go straight
	// to the full one.
	contendedFor = 10 * time.Second
	// severalFor is the same for a name with shared leases or permits. Their renewals, every few
	// seconds, note the name again.
	severalFor = time.Minute
)

// hints remembers names whose fast path failed recently. Its memory is bounded: if two names share
// an entry, the later one replaces the other. A wrong or forgotten hint only costs time.
type hints struct {
	last  uint32 // how long a hint lasts, in ticks
	since time.Time
	seed  maphash.Seed
	noted [1024]atomic.Uint64 // each: a part of the name's hash, and the tick
}

const tick = 10 * time.Millisecond

func newHints(last time.Duration) *hints {
	return &hints{last: uint32(last / tick), since: time.Now(), seed: maphash.MakeSeed()}
}

// of returns the entry of a name, and the part of its hash that the entry stores.
func (h *hints) of(name string) (place *atomic.Uint64, part uint64) {
	hash := maphash.String(h.seed, name)
	return &h.noted[hash%uint64(len(h.noted))], hash >> 32
}

// now returns the time in ticks. It begins above last, so that an empty entry is not a hint.
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
