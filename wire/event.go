package wire

import (
	"encoding/json"

	"github.com/holdfast-locks/holdfast/driver"
)

// An Event is one thing that happened to a lock, or to the command that ran under it.
type Event struct {
	Event   string `json:"event"` // waiting, acquired, lost, exited, released, result
	Name    string `json:"name"`
	LeaseID string `json:"lease_id,omitempty"` // for its holder only
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

// A Once is the state of a do-once key.
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

// A OnceRequest asks a server for do-once work. A zero field is default.
type OnceRequest struct {
	TTLMS       int64             `json:"ttl_ms,omitempty"`      // of the lease under which the work is done; default 30,000
	ShortTTL    bool              `json:"short_ttl,omitempty"`   // the client means a TTL below one second
	WaitMS      int64             `json:"wait_ms,omitempty"`     // for the result of somebody else's work, or for the turn to do it
	Fingerprint string            `json:"fingerprint,omitempty"` // of the request that the work answers
	Holder      *Self             `json:"holder,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// A OnceDone is the result of do-once work. It is JSON, or text, or bytes.
type OnceDone struct {
	Key         string          `json:"key"`
	Result      json.RawMessage `json:"result,omitempty"`        // a string if the work has left text that is not JSON
	ResultBytes []byte          `json:"result_base64,omitempty"` // instead, if it is not UTF-8
	Token                       // of the run that it was done in
}

// A OnceResult is what a run of do-once work leaves, or that it has failed.
type OnceResult struct {
	LeaseID     string          `json:"lease_id"`
	Result      json.RawMessage `json:"result,omitempty"`        // any JSON; without it, and without bytes, the result is empty
	ResultBytes []byte          `json:"result_base64,omitempty"` // instead of JSON
	RetentionMS int64           `json:"retention_ms,omitempty"`  // for how long it is kept; default 24 h
}

// A Onces is one page of a list, sorted by key.
type Onces struct {
	Once       []Once `json:"once"`
	NextCursor string `json:"next_cursor,omitempty"` // for the next page; empty if this is the last
}

// A OnceFailure is a run of do-once work that leaves no result.
type OnceFailure struct {
	LeaseID string `json:"lease_id"`
}

// A OnceState is the state of a do-once key, with its result if it is done.
type OnceState struct {
	Once
	Result      json.RawMessage `json:"result,omitempty"`        // as in OnceDone
	ResultBytes []byte          `json:"result_base64,omitempty"` // as in OnceDone
}
