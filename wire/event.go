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

	// Only in waiting.
	Place       int      `json:"place,omitempty"` // 0: none
	QueueLength int      `json:"queue_length,omitempty"`
	Holder      *Blocker `json:"holder,omitempty"` // nil if the store has not named the holder
	Outage      string   `json:"outage,omitempty"` // why the store does not answer

	// Only in result.
	Outcome string `json:"outcome,omitempty"`

	Status   *int   `json:"status,omitempty"`    // the exit status of the command that ran under the lock; in result, of the run
	WaitedMS *int64 `json:"waited_ms,omitempty"` // only in waiting and result
	HeldMS   *int64 `json:"held_ms,omitempty"`   // only in result
	Reason   string `json:"reason,omitempty"`
}

// A Blocker is the holder of a lock that others wait for.
type Blocker struct {
	Who
	HeldMS      *int64 `json:"held_ms"`       // since the grant; null: the store does not know
	ExpiresInMS *int64 `json:"expires_in_ms"` // unless it is renewed; null: never
	Released    bool   `json:"released"`      // released; still blocks others until its minimum hold ends
	Foreign     bool   `json:"foreign"`       // the holder is a client that is not holdfast
}

// BlockerOf returns a Blocker.
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
	*Token              // the token of the run that did it; nil if it is not done
	OutputLength *int   `json:"output_length,omitempty"` // bytes, if done
	Holder       *Who   `json:"holder,omitempty"`        // if in progress

	Schedule *Schedule `json:"schedule,omitempty"` // nil unless the key is the name of a schedule
}

// A OnceRequest asks a server for do-once work. A zero field is default.
type OnceRequest struct {
	TTLMS       int64             `json:"ttl_ms,omitempty"`      // the TTL of the lease under which the work is done; default 30,000
	ShortTTL    bool              `json:"short_ttl,omitempty"`   // the client means a TTL below one second
	WaitMS      int64             `json:"wait_ms,omitempty"`     // how long to wait for the result of another client's work, or for the turn to do it
	Fingerprint string            `json:"fingerprint,omitempty"` // identifies the request that the work answers
	Holder      *Self             `json:"holder,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// A OnceDone is the result of do-once work: JSON, text, or bytes.
type OnceDone struct {
	Key         string          `json:"key"`
	Result      json.RawMessage `json:"result,omitempty"`        // a string if the result is text that is not JSON
	ResultBytes []byte          `json:"result_base64,omitempty"` // instead of Result, if the result is not UTF-8
	Token                       // the token of the run that did the work
}

// A OnceResult is the result of a run of do-once work.
type OnceResult struct {
	LeaseID     string          `json:"lease_id"`
	Result      json.RawMessage `json:"result,omitempty"`        // any JSON; without it, and without bytes, the result is empty
	ResultBytes []byte          `json:"result_base64,omitempty"` // instead of JSON
	RetentionMS int64           `json:"retention_ms,omitempty"`  // how long the store keeps it; default 24 h
}

// A Onces is one page of a list, sorted by key.
type Onces struct {
	Once       []Once `json:"once"`
	NextCursor string `json:"next_cursor,omitempty"` // for the next page; empty if this is the last
}

// A OnceFailure ends a run of do-once work without a result.
type OnceFailure struct {
	LeaseID string `json:"lease_id"`
}

// A OnceState is the state of a do-once key, with its result if it is done.
type OnceState struct {
	Once
	Result      json.RawMessage `json:"result,omitempty"`        // as in OnceDone
	ResultBytes []byte          `json:"result_base64,omitempty"` // as in OnceDone
}
