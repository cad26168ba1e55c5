package wire

// An Event is one thing that happened to a lock.
type Event struct {
	Event   string `json:"event"`
	Name    string `json:"name"`
	LeaseID string `json:"lease_id,omitempty"` // for nobody but its holder
	*Token         // nil if there was no grant
	Status  *int   `json:"status,omitempty"` // of the command that ran under the lock
	Reason  string `json:"reason,omitempty"`
}

// A Once is what has become of a do-once key.
type Once struct {
	Key          string `json:"key"`
	State        string `json:"state"`             // done, in_progress, unknown
	HeldMS       *int64 `json:"held_ms,omitempty"` // if in progress: for how long
	ExpiresInMS  *int64 `json:"expires_in_ms"`     // of the result or the lease; null: none or never
	*Token              // of the run that it was done in; nil if it is not done
	OutputLength *int   `json:"output_length,omitempty"` // bytes, if done
	Holder       *Who   `json:"holder,omitempty"`        // if in progress
}
