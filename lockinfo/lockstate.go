package lockinfo

import "time"

// A LockState is what a store knows of one name.
type LockState struct {
	Name        string
	Mode        Mode      // the mode of all holders, with the sum of their permits, see Mode.Plus; zero without a holder
	Holders     []Holding // live leases, and released ones that KeepFor keeps closed; in the order of their grants
	Queue       []Place   // in order, at least the first ShownPlaces; List may leave it out
	QueueLength int       // how many places there are; always set
	LastToken   uint64    // the token of the latest grant; 0 if the store knows none
}

// Live returns the holders who have not released the lock.
func (l LockState) Live() (live []Holding) {
	for _, h := range l.Holders {
		if !h.Released {
			live = append(live, h)
		}
	}
	return live
}

// A Holding is one live lease of a LockState.
type Holding struct {
	LeaseID   LeaseID `json:"-"` // empty if a client that is not holdfast holds the lock
	Token     uint64  // 0 if a client that is not holdfast holds the lock
	Mode      Mode
	Holder    Holder
	Since     time.Duration // see Blocker.Since
	ExpiresIn time.Duration // Never if it has no end
	Released  bool          // released; still blocks others until KeepFor ends
	TTL       time.Duration // ExpiresIn as it was last set; 0 if the store does not know
}

// Foreign reports whether a client that is not holdfast holds the lock.
func (h Holding) Foreign() bool { return h.Token == 0 && !h.Released }

// A Place is one place in the queue of a LockState.
type Place struct {
	LeaseID   LeaseID `json:"-"` // the ID of the requested lease
	Mode      Mode
	Holder    Holder
	Since     time.Duration // how long ago the store saw the first request
	ExpiresIn time.Duration // until the place is given up, unless it is refreshed
}

// Never is the ExpiresIn of a lock that a foreign client took without a TTL.
const Never time.Duration = -1
