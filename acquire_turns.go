package holdfast

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"
)

// Where the store keeps no queue, those who wait try again at most pollLongest
// after their last try. Whoever has just released the lock, and wants it again,
// would be there before them each time. INVARIANT I7: so it lets them go first.
const (
	// A client that knows that others want the lock may have it several times
	// running, for turnsSlice, and then leaves it free for about as long as it
	// had it: they have waited for that time, and the pauses between their
	// tries have grown with it. When nobody came for turnsInVain in all, or
	// when it has not asked for turnsMemory, it takes them to be gone.
	turnsSlice  = 20 * time.Millisecond
	turnsInVain = 4 * pollLongest
	turnsMemory = 2 * time.Second

	// turnsUnseen is for how long a client may have the lock, release after
	// release, and not know: one that is never refused hears of nobody. Then it
	// leaves the lock free for pollLongest, a fortieth of that time, and sees
	// who comes.
	turnsUnseen = 10 * time.Second

	turnsNames = 256 // that a client remembers
)

// turns is what a client remembers of names that it has released, or was
// refused, a moment ago. A nil one is for stores with a queue, and remembers
// nothing. INVARIANT I11: its size is fixed. A name takes the place of another,
// which then is not left free once.
type turns struct {
	seed maphash.Seed

	mu     sync.Mutex // guards the rest
	recent [turnsNames]turn
}

// A turn is what is remembered of one name.
type turn struct {
	name     string
	released time.Time // when this client last gave it back
	streak
}

// A streak is a time in which a client has the lock, release after release, and
// sees nobody else. Its leases carry it on: a lease may last for longer than
// the memory.
type streak struct {
	since  time.Time     // its beginning: when the others last had their chance
	wanted bool          // somebody else had the lock, not long ago
	vain   time.Duration // for how long it was left free since then
}

func newTurns() *turns { return &turns{seed: maphash.MakeSeed()} }

// ofLocked returns what is remembered of a name: nothing if another has its
// place, or if it is too old.
func (t *turns) ofLocked(name string, now time.Time) *turn {
	p := &t.recent[maphash.String(t.seed, name)%turnsNames]
	if p.name != name || now.Sub(later(p.since, p.released)) > turnsMemory {
		*p = turn{name: name, streak: streak{since: now}}
	}
	return p
}

// refused notes that somebody else has the lock.
func (t *turns) refused(name string) {
	if t == nil {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ofLocked(name, now).streak = streak{since: now, wanted: true}
}

// pause returns for how long from now a client that can wait should leave the
// lock to others. It counts from its own release: one that comes later has less
// to wait, or nothing.
func (t *turns) pause(name string) time.Duration {
	if t == nil {
		return 0
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.ofLocked(name, now)
	idle, lasted := now.Sub(p.released), p.released.Sub(p.since)
	var d time.Duration
	switch {
	case p.since.After(now): // another goroutine leaves it to them already
		d = p.since.Sub(p.released)
	case idle >= pollLongest, p.vain >= turnsInVain: // they had their chance
		p.streak = streak{since: now}
	case p.wanted && lasted >= turnsSlice:
		d = min(lasted, pollLongest)
		d = d/2 + rand.N(d/2+1)
		p.streak = streak{since: p.released.Add(d), wanted: true, vain: p.vain + d}
	case lasted >= turnsUnseen:
		d = pollLongest
		p.streak = streak{since: p.released.Add(d)}
	}
	return max(0, d-idle)
}

// granted returns the streak that a new lease carries on.
func (t *turns) granted(name string) *streak {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ofLocked(name, time.Now()).streak
	return &s
}

// released notes that the lease was given back, and that the lock is free: with
// MinHold it need not be.
func (t *turns) released(l *Lease) {
	if t == nil {
		return
	}
	now, term := time.Now(), l.present()
	if term.minHold > 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p, s := t.ofLocked(l.name, now), *l.streak
	if p.wanted && p.since.After(term.began.mono) { // another goroutine was refused meanwhile
		s.wanted, s.vain = true, 0
	}
	p.released, p.streak = now, s
}
