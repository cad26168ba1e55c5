package wire

import "github.com/holdfast-locks/holdfast/driver"

// An Event is one thing that happened to a lock, or to the command that ran under it.
type Event struct {
	Event   string `json:"event"` // waiting, acquired, lost, exited, released, result
	Name    string `json:"name"`
	LeaseID string `json:"lease_id,omitempty"` // for nobody but its holder
	*Token         // nil if there was no grant

	// Of waiting.
	Place       int      `json:"place,omitempty"` // 0: none
	QueueLength int      `json:"queue_length,omitempty"`
	Holder      *Blocker `json:"holder,omitempty"` // nil if the store has not said who it is
	Outage      string   `json:"outage,omitempty"` // why the store does not answer

	// Of result.
	Outcome string `json:"outcome,omitempty"`

	Status   *int   `json:"status,omitempty"`    // of the command that ran under the lock; of result: of the run
	WaitedMS *int64 `json:"waited_ms,omitempty"` // of waiting and result
	HeldMS   *int64 `json:"held_ms,omitempty"`   // of result
	Reason   string `json:"reason,omitempty"`
}

// A Blocker is what somebody waits for: who has the lock.
type Blocker struct {
	Who
	HeldMS      *int64 `json:"held_ms"`       // since the grant; null: the store does not know
	ExpiresInMS *int64 `json:"expires_in_ms"` // unless it is renewed; null: never
	Released    bool   `json:"released"`      // released; still blocks others until its minimum hold ends
	Foreign     bool   `json:"foreign"`       // a client that is not holdfast
}

// BlockerOf returns what is in the way.
func BlockerOf(b driver.Blocker) Blocker {
	v := Blocker{Who: WhoOf(b.Holder), ExpiresInMS: Left(b.ExpiresIn), Released: b.Released, Foreign: b.Foreign}
	if b.Since > 0 {
		v.HeldMS = Left(b.Since)
	}
	return v
}

// A Once is what has become of a do-once key.
type Once struct {
	Key          string `json:"key"`
	State        string `json:"state"`             // done, in_progress, unknown, schedule
	HeldMS       *int64 `json:"held_ms,omitempty"` // if in progress: for how long
	ExpiresInMS  *int64 `json:"expires_in_ms"`     // of the result or the lease; null: none or never
	*Token              // of the run that it was done in; nil if it is not done
	OutputLength *int   `json:"output_length,omitempty"` // bytes, if done
	Holder       *Who   `json:"holder,omitempty"`        // if in progress

	Schedule *Schedule `json:"schedule,omitempty"` // if it is one
}
