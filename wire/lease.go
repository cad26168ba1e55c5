package wire

import (
	"bytes"
	"encoding/json"
)

// A LeaseRequest asks a server for a lease. A zero field is default.
type LeaseRequest struct {
	Name      string   `json:"name,omitempty"`
	Names     []string `json:"names,omitempty"`       // several names instead of Name: all of them or none
	Mode      string   `json:"mode,omitempty"`        // exclusive (default), shared, semaphore
	Limit     int      `json:"limit,omitempty"`       // required for a semaphore
	Permits   int      `json:"permits,omitempty"`     // how many permits of a semaphore; default 1
	TTLMS     int64    `json:"ttl_ms,omitempty"`      // default 30,000
	ShortTTL  bool     `json:"short_ttl,omitempty"`   // the client means a TTL below one second
	WaitMS    int64    `json:"wait_ms,omitempty"`     // at most 55,000 count; default 0: do not wait
	MinHoldMS int64    `json:"min_hold_ms,omitempty"` // how long the name stays closed, counted from the grant, even if the lease is released earlier

	// LockDelayMS is how long the name stays closed after the lease has expired, unless the
	// lease was released: for resources that cannot check tokens.
	LockDelayMS int64 `json:"lock_delay_ms,omitempty"`

	MinToken uint64            `json:"min_token,omitempty"` // the fencing token must be greater
	Holder   *Self             `json:"holder,omitempty"`
	Reason   string            `json:"reason,omitempty"` // why, for people
	Labels   map[string]string `json:"labels,omitempty"`
}

// A Self is a holder's description of itself. In JSON it can also be a string, which is its label.
type Self struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"` // its base name, without arguments
	Label   string `json:"label,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. It refuses unknown fields.
func (s *Self) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*s = Self{}
		return json.Unmarshal(text, &s.Label)
	}
	type plain Self
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(s))
}

// A Lease is a lease that was granted.
type Lease struct {
	LeaseID string `json:"lease_id"` // secret: it can release the lease
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Token
	TTLMS       int64 `json:"ttl_ms"`
	ExpiresInMS int64 `json:"expires_in_ms"` // count it from before the request was sent

	Repeated bool `json:"repeated,omitempty"` // an earlier request with the same key has got the lease
	Holder   *Who `json:"holder,omitempty"`   // if Repeated: the holder that the store has
}

// Leases are the leases of several names, in the order of the request.
type Leases struct {
	Leases []Lease `json:"leases"`
}

// A Queued is a request that has a place in the queue.
type Queued struct {
	Place            int       `json:"place"` // 1 for the first
	QueueLength      int       `json:"queue_length"`
	Holders          []Blocker `json:"holders"`
	PlaceExpiresInMS int64     `json:"place_expires_in_ms"` // unless the request is sent again
}

// A LeaseRef names a lease to renew, check or release.
type LeaseRef struct {
	Name    string `json:"name,omitempty"`
	LeaseID string `json:"lease_id,omitempty"`
	TTLMS   int64  `json:"ttl_ms,omitempty"` // in a renewal: how long the lease lasts from now on, at least; default 30,000

	ShortTTL bool `json:"short_ttl,omitempty"` // in a renewal: the client means a TTL below one second

	// FencingToken is the token of the caller's lease, in a renewal or a check. If the lease has
	// another token, the caller's lease is lost. 0 is not compared.
	FencingToken uint64 `json:"fencing_token,omitempty"`
}

// LeaseRefs are one lease, or several.
type LeaseRefs struct {
	LeaseRef
	Leases []LeaseRef `json:"leases,omitempty"`
}

// A Renewed is a lease that was renewed.
type Renewed struct {
	Name        string `json:"name"`
	TTLMS       int64  `json:"ttl_ms"`
	ExpiresInMS int64  `json:"expires_in_ms"` // count it from before the request was sent
	*Token             // nil: the caller did not send it, and the store did not return it
}

// A Downgraded is a lease that was exclusive and is shared now.
type Downgraded struct {
	LeaseID string `json:"lease_id"`
	Name    string `json:"name"`
	Mode    string `json:"mode"` // shared
	Token
	ExpiresInMS int64 `json:"expires_in_ms"` // count it from before the request was sent
}

// A LeaseResult is the result for one lease of several.
type LeaseResult struct {
	Name        string `json:"name"`
	LeaseID     string `json:"lease_id"`
	Status      int    `json:"status"`           // the HTTP status of a request for this lease alone
	Code        string `json:"code,omitempty"`   // the code of a refusal
	Detail      string `json:"detail,omitempty"` // for people
	TTLMS       int64  `json:"ttl_ms,omitempty"` // if the lease was renewed
	ExpiresInMS *int64 `json:"expires_in_ms,omitempty"`
	*Token             // if the lease was renewed; as in Renewed
	Author      string `json:"author,omitempty"` // if the lease was broken: who broke it
	Reason      string `json:"reason,omitempty"` // if the lease was broken: why
}

// LeaseResults are the results for several leases, in the order of the request.
type LeaseResults struct {
	Leases []LeaseResult `json:"leases"`
}
