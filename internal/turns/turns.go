// Package turns lets clients take turns at a lock where the store keeps no queue.
package turns

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/internal/wait"
)

// Where the store keeps no queue, waiters try again at most wait.PollLongest
// after their last try. A client that has just released the lock, and wants it again,
// would be there before them each time. INVARIANT I7: so it lets them go first.
const (
	// A client that knows that others want the lock may have it several times
	// running, for slice, and then leaves it free for about as long as it
	// had it: they have waited for that time, and the pauses between their
	// tries have grown with it. When none came for inVain in all, or
	// when the client has not tried for memory, it takes them to be gone.
	slice  = 20 * time.Millisecond
	inVain = 4 * wait.PollLongest
	memory = 2 * time.Second

	// unseen is for how long a client may have the lock, release after
	// release, without a refusal: it cannot know of waiters then. After that it
	// leaves the lock free for wait.PollLongest, a fortieth of that time, so that
	// they can take it.
	unseen = 10 * time.Second

	names = 256 // that a client remembers
)

// Turns is what a client remembers of names that it has released, or was
// refused, a moment ago. A nil one is for stores with a queue, and remembers
// nothing. INVARIANT I11: its size is fixed. A name takes the place of another,
// which then is not left free once.
type Turns struct {
	seed maphash.Seed

	mu     sync.Mutex // guards the rest
	recent [names]turn
}

// A turn is what is remembered of one name.
type turn struct {
	name     string
	released time.Time // when this client last released it
	Streak
}

// A Streak is a time in which a client has the lock, release after release, without
// a refusal. It is kept with the lease, which may last for longer than the memory.
type Streak struct {
	since  time.Time     // its beginning: when the others last had their chance
	wanted bool          // somebody else had the lock, not long ago
	vain   time.Duration // for how long it was left free since then
}

// New returns a memory without names.
func New() *Turns { return &Turns{seed: maphash.MakeSeed()} }

// ofLocked returns what is remembered of a name: nothing if another has its
// place, or if it is too old.
func (t *Turns) ofLocked(name string, now time.Time) *turn {
	p := &t.recent[maphash.String(t.seed, name)%names]
	if p.name != name || min(now.Sub(p.since), now.Sub(p.released)) > memory {
		*p = turn{name: name, Streak: Streak{since: now}}
	}
	return p
}

// Refused notes that somebody else has the lock.
func (t *Turns) Refused(name string) {
	if t == nil {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ofLocked(name, now).Streak = Streak{since: now, wanted: true}
}

// Pause returns for how long from now a client that can wait should leave the
// lock to others. It counts from its own release: one that comes later has less
// to wait, or nothing.
func (t *Turns) Pause(name string) time.Duration {
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
	case idle >= wait.PollLongest, p.vain >= inVain: // they had their chance
		p.Streak = Streak{since: now}
	case p.wanted && lasted >= slice:
		d = min(lasted, wait.PollLongest)
		d = d/2 + rand.N(d/2+1)
		p.Streak = Streak{since: p.released.Add(d), wanted: true, vain: p.vain + d}
	case lasted >= unseen:
		d = wait.PollLongest
		p.Streak = Streak{since: p.released.Add(d)}
	}
	return max(0, d-idle)
}

// Granted returns the streak that a new lease carries on.
func (t *Turns) Granted(name string) *Streak {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ofLocked(name, time.Now()).Streak
	return &s
}

// Released notes that a lease was released, and that the lock is free. The lease was
// granted at began, with the streak that Granted returned, which is not nil.
func (t *Turns) Released(name string, carried *Streak, began time.Time) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p, s := t.ofLocked(name, now), *carried
	if p.wanted && p.since.After(began) { // another goroutine was refused meanwhile
		s.wanted, s.vain = true, 0
	}
	p.released, p.Streak = now, s
}

// Names returns how many names the client remembers.
func (t *Turns) Names() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.recent {
		if p.name != "" {
			n++
		}
	}
	return n
}
