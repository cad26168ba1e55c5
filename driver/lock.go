package driver

import "time"

// A Lock is what a store knows of one name.
type Lock struct {
	Name        string
	Mode        Mode      // of the holders
	Limit       int       // of a Semaphore; else 0
	Holders     []Holding // live leases, and what KeepFor keeps closed; in the order of their grants
	Queue       []Waiting // in order, at least the first ShownPlaces; List may leave it out
	QueueLength int       // of all; always given
	LastToken   uint64    // of the latest grant; 0 if the store knows none
}

// Live returns the holders who have not released the lock.
func (l Lock) Live() (live []Holding) {
	for _, h := range l.Holders {
		if !h.Released {
			live = append(live, h)
		}
	}
	return live
}

// ShownPlaces is how many places of a long queue Inspect must describe. An
// engine may leave the rest out, because to read them would hold its store up.
const ShownPlaces = 256

// A Holding is one live lease of a Lock.
type Holding struct {
	LeaseID   LeaseID `json:"-"` // empty if a client that is not holdfast holds the lock
	Token     uint64  // 0 if a client that is not holdfast holds the lock
	Permits   int     // of a Semaphore; else 0
	Holder    Holder
	Since     time.Duration // see Blocker.Since
	ExpiresIn time.Duration // Never if it has no end
	Released  bool          // released; still blocks others until KeepFor ends
}

// Foreign reports whether a client that is not holdfast holds the lock.
func (h Holding) Foreign() bool { return h.LeaseID == "" && !h.Released }

// A Waiting is one place in the queue of a Lock.
type Waiting struct {
	LeaseID   LeaseID `json:"-"` // of the lease that is asked for
	Mode      Mode
	Permits   int // of a Semaphore; else 0
	Holder    Holder
	Since     time.Duration // how long ago the store saw the first request
	ExpiresIn time.Duration // until the place is given up, unless it is refreshed
}
