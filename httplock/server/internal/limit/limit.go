// Package limit counts what each caller uses of a server: waiters, streams, leases, bytes. A
// caller that exceeds a limit is refused, and the others do not notice.
package limit

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Max is how much one caller may have at this server. A zero field is default.
type Max struct {
	Waiters int // requests that wait for a lock
	Streams int // responses that go on: held locks, events, news
	Leases  int // leases requested through this server that have not ended
	Kept    int // bytes of results and one-time tokens given to this server that have not ended
}

// Exceeded is the error of a caller that has reached a limit. Nothing was done.
type Exceeded struct {
	Code   string // for programs
	Detail string
	Again  time.Duration // when to retry
	Busy   bool          // all callers together have reached it
}

func (e *Exceeded) Error() string { return e.Detail }

// Limits counts what the callers of one server use. The counts protect the memory of the
// server, and are lost when it ends.
type Limits struct {
	max Max

	mu      sync.Mutex
	callers map[string]*account // by name; callers that use nothing are left out
	bytes   int64               // of the bodies of all callers
}

// An account is what one caller has.
type account struct {
	waiters, streams, lists int
	turns                   chan struct{} // has a value for each list that is made; nil before the first
	bytes                   int64         // of bodies
	leases                  ledger        // see Lease
	kept                    ledger        // results and tokens
}

// New returns limits. The defaults are far above what a program needs, and far below what a
// server has.
func New(max Max) *Limits {
	return &Limits{callers: map[string]*account{}, max: Max{
		Waiters: cmp.Or(max.Waiters, 10_000), Streams: cmp.Or(max.Streams, 5_000),
		Leases: cmp.Or(max.Leases, 100_000), Kept: cmp.Or(max.Kept, 64<<20),
	}}
}

// open returns the account of c, locked until it is closed.
func (l *Limits) open(c *caller.Caller) (a *account, closed func()) {
	l.mu.Lock()
	a = l.callers[c.Name]
	if a == nil {
		l.sweepLocked()
		a = &account{}
		l.callers[c.Name] = a
	}
	return a, func() {
		l.tidyLocked(c.Name, a)
		l.mu.Unlock()
	}
}

// Waiter counts a waiting request of c until leave, which may be called twice.
func (l *Limits) Waiter(c *caller.Caller) (leave func(), err error) {
	return l.enter(c, "waiters", l.max.Waiters, func(a *account) *int { return &a.waiters })
}

// Stream counts a stream of c until leave, which may be called twice.
func (l *Limits) Stream(c *caller.Caller) (leave func(), err error) {
	return l.enter(c, "streams", l.max.Streams, func(a *account) *int { return &a.streams })
}

func (l *Limits) enter(c *caller.Caller, what string, limit int, count func(*account) *int) (leave func(), err error) {
	a, closed := l.open(c)
	defer closed()
	n := count(a)
	if *n >= limit {
		return nil, exceeded(what, limit, time.Second)
	}
	*n++
	return sync.OnceFunc(func() {
		_, closed := l.open(c) // returns a, which is not empty
		defer closed()
		*n--
	}), nil
}

// Lease returns the key of a lease: a digest, which is short. A client of an engine chooses
// its lease IDs, and may choose the same one for many names.
func Lease(name string, id lockinfo.LeaseID) string {
	sum := sha256.Sum256([]byte(string(id) + name))
	return string(sum[:16])
}

// Leases counts leases that c is about to request, or none of them. Each counts until
// Ended or until it must have expired: a request whose outcome is unknown may have been
// granted. The same key counts once.
func (l *Limits) Leases(c *caller.Caller, ttl time.Duration, keys ...string) error {
	a, closed := l.open(c)
	defer closed()
	if more := a.more(keys); more > 0 && len(a.leases.all)+more > l.max.Leases {
		a.leases.sweep()
		if len(a.leases.all)+a.more(keys) > l.max.Leases {
			return exceeded("leases", l.max.Leases, a.leases.again())
		}
	}
	for _, key := range keys {
		a.renew(key, ttl)
	}
	return nil
}

// more returns how many of the leases are not counted yet.
func (a *account) more(keys []string) (n int) {
	for _, key := range keys {
		if _, there := a.leases.all[key]; !there {
			n++
		}
	}
	return n
}

// renew counts a lease for ttl from now, or longer if it already counts for longer.
func (a *account) renew(key string, ttl time.Duration) {
	if ends := time.Now().Add(ttl); ends.After(a.leases.all[key].ends) {
		a.leases.put(key, entry{ends: ends})
	}
}

// Renewed reports that the store keeps a lease of c for ttl from now. Another server may have
// acquired it.
func (l *Limits) Renewed(c *caller.Caller, key string, ttl time.Duration) {
	a, closed := l.open(c)
	defer closed()
	a.renew(key, ttl)
}

// Ended reports that a lease of c has ended, or was not granted.
func (l *Limits) Ended(c *caller.Caller, key string) {
	a, closed := l.open(c)
	defer closed()
	a.leases.drop(key)
}

// Load returns what all callers have now.
func (l *Limits) Load() (waiters, streams, leases int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.callers {
		a.sweep()
		waiters += a.waiters
		streams += a.streams
		leases += len(a.leases.all)
	}
	return waiters, streams, leases
}

// INVARIANT I11: callers whose leases have all expired are forgotten. Each new caller causes
// a check of a few others, so that nothing runs in the background.
func (l *Limits) sweepLocked() {
	const few = 2
	looked := 0
	for name, a := range l.callers {
		if looked++; looked > few {
			return
		}
		a.sweep()
		l.tidyLocked(name, a)
	}
}

func (l *Limits) tidyLocked(name string, a *account) {
	if a.waiters == 0 && a.streams == 0 && a.lists == 0 && a.bytes == 0 && len(a.leases.all) == 0 && len(a.kept.all) == 0 {
		delete(l.callers, name)
	}
}

func (a *account) sweep() {
	a.leases.sweep()
	a.kept.sweep()
}

func exceeded(what string, limit int, again time.Duration) error {
	return &Exceeded{
		Code: "too-many-" + what, Again: again,
		Detail: fmt.Sprintf("you have %d %s at this server, which is the limit: end some of them, and ask again; nothing was done", limit, what),
	}
}
