package driver

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A LossTeller is an engine with Capabilities.Losses: it can hear of leases
// that ended before their time. That must cost nothing for each lease: no
// command, no goroutine and no connection.
type LossTeller interface {
	// OnLoss registers told, which is then called for each message, until stop
	// is called. A client registers once, for all its leases. A message may
	// concern leases of others, and may come late, twice, or never: a holder
	// must not rely on it. An engine may begin to listen up to LossStart after
	// a grant.
	//
	// told is guaranteed to return soon, and may be called from several
	// goroutines. It must be called without any lock of the engine, and must
	// not be called after stop has returned, unless that call had begun. A
	// second stop does nothing.
	OnLoss(told func(Loss)) (stop func())
}

// LossStart is how long after a first grant an engine may be deaf to losses, so
// that short work costs nothing.
const LossStart = 50 * time.Millisecond

// A Loss is one message about leases of a name that may be over.
type Loss struct {
	Name string `json:"name"`

	// LeaseID is the ID of a lease that has ended. The store, or the client that ended
	// the lease there, has sent the whole ID, which no other client knows. If it
	// is empty, some lease of the name may have ended: a renewal will tell.
	LeaseID lockinfo.LeaseID `json:"lease_id,omitzero"`

	// Err is the reason, and wraps ErrLost; nil if LeaseID is empty.
	Err error `json:"-"`
}

// Losses is what a LossTeller in Go is made of: it knows who wants to hear of
// losses, and when it is worth listening for them. The zero Losses is ready to
// use.
type Losses struct {
	held  atomic.Int64 // roughly how many leases were granted and not released
	armed atomic.Bool  // whether the engine listens, or will if it still holds any soon

	mu        sync.Mutex
	listeners map[*func(Loss)]struct{}
}

// OnLoss implements LossTeller.
func (l *Losses) OnLoss(told func(Loss)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = map[*func(Loss)]struct{}{}
	}
	l.listeners[&told] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, &told)
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

// Ended notes that a lease was released.
func (l *Losses) Ended() { l.held.Add(-1) }

func (l *Losses) heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners) > 0
}

// Tell tells everybody who listens. The engine must not hold a lock of its own.
func (l *Losses) Tell(loss Loss) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.listeners))
	l.mu.Unlock()
	for _, told := range all {
		(*told)(loss)
	}
}
