// Package limit counts what each caller has of a server: waiters, streams, leases. One
// caller that takes more than its share is refused, and the others do not notice.
package limit

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// Max is how much one caller may have at this server. A zero field is default.
type Max struct {
	Waiters int // requests that wait for a lock
	Streams int // responses that go on: held locks, events, news
	Leases  int // leases that were asked for through this server, and have not ended
}

// defaults are far above what a program needs, and far below what a server has.
var defaults = Max{Waiters: 10_000, Streams: 5_000, Leases: 100_000}

// Exceeded says that a caller has as much as it may. Nothing was done.
type Exceeded struct {
	Code   string // for programs
	Detail string
	Again  time.Duration // when to ask again
}

func (e *Exceeded) Error() string { return e.Detail }

// Limits count what the callers of one server have. A nil Limits allows everything. What
// callers have is forgotten with the server, as it is the server's memory that is guarded.
type Limits struct {
	max Max

	mu      sync.Mutex
	callers map[string]*account // by their names; without those that have nothing
}

// An account is what one caller has.
type account struct {
	waiters, streams int
	leases           map[driver.LeaseID]time.Time // when each ends if it is not renewed
	sooner           time.Time                    // none of them ends before
}

// New returns limits.
func New(max Max) *Limits {
	for _, n := range []struct {
		given    *int
		standard int
	}{{&max.Waiters, defaults.Waiters}, {&max.Streams, defaults.Streams}, {&max.Leases, defaults.Leases}} {
		if *n.given == 0 {
			*n.given = n.standard
		}
	}
	return &Limits{max: max, callers: map[string]*account{}}
}

// Waiter counts a request of c that waits, until leave. leave may be called twice.
func (l *Limits) Waiter(c *caller.Caller) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	return l.enter(c, "waiters", l.max.Waiters, func(a *account) *int { return &a.waiters })
}

// Stream counts a response to c that goes on, until leave. leave may be called twice.
func (l *Limits) Stream(c *caller.Caller) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	return l.enter(c, "streams", l.max.Streams, func(a *account) *int { return &a.streams })
}

func (l *Limits) enter(c *caller.Caller, what string, limit int, count func(*account) *int) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(c)
	if *count(a) >= limit {
		return nil, exceeded(what, limit, time.Second)
	}
	*count(a)++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*count(a)--
		l.tidyLocked(c, a)
	}), nil
}

// Lease counts a lease that c is about to ask for. It goes on counting until Ended, or
// until it must have run out: a request whose outcome is unknown may have been granted.
// The same lease ID again is one lease.
func (l *Limits) Lease(c *caller.Caller, id driver.LeaseID, ttl time.Duration) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, now := l.accountLocked(c), time.Now()
	if _, again := a.leases[id]; !again && len(a.leases) >= l.max.Leases {
		if a.sweep(now); len(a.leases) >= l.max.Leases {
			return exceeded("leases", l.max.Leases, max(time.Second, min(time.Minute, a.sooner.Sub(now))))
		}
	}
	a.count(id, now.Add(ttl))
	return nil
}

// Renewed says that the store keeps a lease of c for ttl from now. It may have been
// granted through another server.
func (l *Limits) Renewed(c *caller.Caller, id driver.LeaseID, ttl time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accountLocked(c).count(id, time.Now().Add(ttl))
}

// Ended says that a lease of c is over, or was not granted.
func (l *Limits) Ended(c *caller.Caller, id driver.LeaseID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accountLocked(c)
	delete(a.leases, id)
	l.tidyLocked(c, a)
}

// A Load is what all callers have at one moment.
type Load struct {
	Waiters int // requests that wait for a lock
	Streams int // responses that go on
	Leases  int // leases that were asked for here, and have not ended
}

// Load returns what all callers have now.
func (l *Limits) Load() (all Load) {
	if l == nil {
		return Load{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.callers {
		a.sweep(time.Now())
		all.Waiters += a.waiters
		all.Streams += a.streams
		all.Leases += len(a.leases)
	}
	return all
}

func (l *Limits) accountLocked(c *caller.Caller) *account {
	a := l.callers[c.Name]
	if a == nil {
		l.sweepLocked()
		a = &account{leases: map[driver.LeaseID]time.Time{}}
		l.callers[c.Name] = a
	}
	return a
}

// INVARIANT I11: callers whose leases have all run out are forgotten. Each that comes
// anew looks at a few of the others, so that nothing runs in the background.
func (l *Limits) sweepLocked() {
	const few = 2
	looked, now := 0, time.Now()
	for name, a := range l.callers {
		if looked++; looked > few {
			return
		}
		a.sweep(now)
		if a.empty() {
			delete(l.callers, name)
		}
	}
}

func (l *Limits) tidyLocked(c *caller.Caller, a *account) {
	if a.empty() && l.callers[c.Name] == a {
		delete(l.callers, c.Name)
	}
}

func (a *account) empty() bool { return a.waiters == 0 && a.streams == 0 && len(a.leases) == 0 }

func (a *account) count(id driver.LeaseID, ends time.Time) {
	if len(a.leases) == 0 || ends.Before(a.sooner) {
		a.sooner = ends
	}
	if ends.After(a.leases[id]) {
		a.leases[id] = ends
	}
}

// sweep forgets the leases that have run out. It looks at nothing before one can have.
func (a *account) sweep(now time.Time) {
	if len(a.leases) == 0 || now.Before(a.sooner) {
		return
	}
	first := true
	for id, ends := range a.leases {
		switch {
		case !now.Before(ends):
			delete(a.leases, id)
		case first || ends.Before(a.sooner):
			a.sooner, first = ends, false
		}
	}
}

func exceeded(what string, limit int, again time.Duration) error {
	return &Exceeded{
		Code: "too-many-" + what, Again: again,
		Detail: fmt.Sprintf("you have %d %s at this server, which is the limit: end some of them, and ask again; nothing was done", limit, what),
	}
}
