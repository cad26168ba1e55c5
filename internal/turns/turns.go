// Package turns lets clients take turns at a lock if the store keeps no queue.
package turns

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/internal/wait"
)

// If the store keeps no queue, a waiter tries again at most wait.PollLongest after its last
// try. A client that has just released the lock, and wants it again, would always be faster.
// INVARIANT I7: so it lets waiters go first.
const (
	// A client that knows of waiters may have the lock several times in a row, for slice. It
	// then leaves the lock free for about as long as it had it, because the pauses between
	// the tries of the waiters have grown with their wait. If it has left the lock free for
	// inVain in all and no other client took it, or has not tried for memory, it assumes that
	// the waiters are gone.
	slice  = 20 * time.Millisecond
	inVain = 4 * wait.PollLongest
	memory = 2 * time.Second

	// unseen is how long a client may have the lock, release after release, without a
	// refusal. It cannot know of waiters during that time. After that it leaves the lock free
	// for wait.PollLongest, a fortieth of that time, so that a waiter can take it.
	unseen = 10 * time.Second

	names = 256 // how many names a client remembers
)

// Turns remembers the names of locks that a client has just released, or was refused. A nil
// Turns is for stores with a queue, and remembers nothing. INVARIANT I11: its size is fixed. A
// name may replace another one, whose lock is then not left free once.
type Turns struct {
	seed maphash.Seed

	mu     sync.Mutex // guards the rest
	recent [names]turn
}

// A turn is what Turns remembers of one name.
type turn struct {
	name     string
	released time.Time // when this client last released it
	Streak
}

// A Streak is a time in which a client has the lock, release after release, without a refusal.
// It is kept with the lease, which may last longer than memory.
type Streak struct {
	since  time.Time     // its beginning: when other clients last had their chance
	wanted bool          // another client had the lock not long ago
	vain   time.Duration // how long the lock was left free since then
}

// New returns Turns without names.
func New() *Turns { return &Turns{seed: maphash.MakeSeed()} }

// ofLocked returns the turn of a name. It starts a new one if another name has its slot, or if it
// is older than memory.
func (t *Turns) ofLocked(name string, now time.Time) *turn {
	p := &t.recent[maphash.String(t.seed, name)%names]
	if p.name != name || min(now.Sub(p.since), now.Sub(p.released)) > memory {
		*p = turn{name: name, Streak: Streak{since: now}}
	}
	return p
}

// Refused notes that another client has the lock.
func (t *Turns) Refused(name string) {
	if t == nil {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ofLocked(name, now).Streak = Streak{since: now, wanted: true}
}

// Pause returns how long from now a client that can wait should leave the lock to others. The
// time counts from the client's last release, so a later call returns less, or 0.
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
	case p.since.After(now): // another goroutine is leaving the lock free already
		d = p.since.Sub(p.released)
	case idle >= wait.PollLongest, p.vain >= inVain: // the others had their chance
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

// Granted returns the streak for a new lease.
func (t *Turns) Granted(name string) *Streak {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ofLocked(name, time.Now()).Streak
	return &s
}

// Released notes that a lease was released, and that the lock is free. The lease was granted at
// began; carried is the streak that Granted returned for it, and must not be nil.
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
