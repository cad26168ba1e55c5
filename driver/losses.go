package driver

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A LossTeller is an engine with Capabilities.Losses: it reports leases that ended before their
// time. That must cost no command, goroutine or connection for each lease.
type LossTeller interface {
	// OnLoss registers a function. The engine calls it for each message that arrives before stop
	// returns. A client registers once, for all its leases. A message may concern leases of other
	// clients, and may come late, twice, or never: a holder must not rely on it. An engine may
	// begin to listen up to LossStart after a grant.
	//
	// The function returns soon, and several goroutines may call it at once. The engine must
	// hold no lock of its own while it calls the function, so a call for an earlier message may
	// still begin, or be running, when stop returns. A second stop does nothing.
	OnLoss(listener func(Loss)) (stop func())
}

// LossStart is how long after a first grant an engine may miss losses, so that short work costs
// nothing.
const LossStart = 50 * time.Millisecond

// A Loss is one message about leases of a name that may have ended.
type Loss struct {
	Name string `json:"name"`

	// LeaseID is the ID of a lease that has ended. The store, or the client that ended
	// the lease there, has sent the whole ID, which no other client knows. If it
	// is empty, some lease of the name may have ended: its holder should renew it.
	LeaseID lockinfo.LeaseID `json:"lease_id,omitzero"`

	// Err is the reason, and wraps ErrLost; nil if LeaseID is empty.
	Err error `json:"-"`
}

// Losses implements most of a LossTeller: it keeps the registered functions, and decides when
// the engine listens for losses. The zero Losses is ready to use.
type Losses struct {
	held  atomic.Int64 // roughly how many leases are granted and not released
	armed atomic.Bool  // the engine listens, or will after LossStart if leases are still held

	mu        sync.Mutex
	listeners map[*func(Loss)]struct{}
}

// OnLoss implements LossTeller.
func (l *Losses) OnLoss(listener func(Loss)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = map[*func(Loss)]struct{}{}
	}
	l.listeners[&listener] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, &listener)
	}
}

// Granted notes n grants. If there is a listener for losses, and leases
// are still held LossStart from now, it calls listen, once.
func (l *Losses) Granted(n int, listen func()) {
	l.held.Add(int64(n))
	if l.armed.Load() || !l.heard() || l.armed.Swap(true) {
		return
	}
	time.AfterFunc(LossStart, func() {
		if l.held.Load() > 0 {
			listen()
			return
		}
		l.armed.Store(false) // the next grant tries again
	})
}

// Ended notes that a lease was released. It may be a lease that another engine was granted.
func (l *Losses) Ended() {
	for {
		n := l.held.Load()
		if n == 0 || l.held.CompareAndSwap(n, n-1) {
			return
		}
	}
}

func (l *Losses) heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners) > 0
}

// Tell passes loss to all registered functions. The engine must not hold a lock of its own.
func (l *Losses) Tell(loss Loss) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.listeners))
	l.mu.Unlock()
	for _, listener := range all {
		(*listener)(loss)
	}
}
