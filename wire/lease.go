package wire

import (
	"bytes"
	"encoding/json"
)

// A LeaseRequest asks a server for a lease. A zero field is default.
type LeaseRequest struct {
	Name      string            `json:"name"`
	Mode      string            `json:"mode,omitempty"`        // exclusive (default), shared, semaphore
	Limit     int               `json:"limit,omitempty"`       // of a semaphore, which needs it
	Permits   int               `json:"permits,omitempty"`     // of them; default 1
	TTLMS     int64             `json:"ttl_ms,omitempty"`      // default 30,000
	WaitMS    int64             `json:"wait_ms,omitempty"`     // 55,000 count at most; default 0: do not wait
	MinHoldMS int64             `json:"min_hold_ms,omitempty"` // for how long the name stays closed, counted from the grant, even if it is released before
	MinToken  uint64            `json:"min_token,omitempty"`   // the fencing token is to be greater
	Holder    *Self             `json:"holder,omitempty"`
	Reason    string            `json:"reason,omitempty"` // why, for people
	Labels    map[string]string `json:"labels,omitempty"`
}

// A Self is what the holder of a lease says of itself. A string is its label.
type Self struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"` // its base name, without arguments
	Label   string `json:"label,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. It refuses fields that there are not.
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

// A Lease is one that was granted.
type Lease struct {
	LeaseID string `json:"lease_id"` // whoever knows it can release the lease
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Token
	TTLMS       int64 `json:"ttl_ms"`
	ExpiresInMS int64 `json:"expires_in_ms"` // count it from before the request was sent
}

// A Queued is a request that has a place in the queue.
type Queued struct {
	Place            int       `json:"place"` // 1 for the first
	QueueLength      int       `json:"queue_length"`
	Holders          []Blocker `json:"holders"`
	PlaceExpiresInMS int64     `json:"place_expires_in_ms"` // unless the request is sent again
}

// A LeaseRef is what renews, checks or releases a lease.
type LeaseRef struct {
	Name    string `json:"name,omitempty"`
	LeaseID string `json:"lease_id,omitempty"`
	TTLMS   int64  `json:"ttl_ms,omitempty"` // to renew: how long it lasts from now on, at least; default 30,000
}

// LeaseRefs are one lease, or several.
type LeaseRefs struct {
	LeaseRef
	Leases []LeaseRef `json:"leases,omitempty"`
}

// A Renewed lease lasts for longer.
type Renewed struct {
	Name        string `json:"name"`
	TTLMS       int64  `json:"ttl_ms"`
	ExpiresInMS int64  `json:"expires_in_ms"` // count it from before the request was sent
}

// A LeaseResult is what became of one lease of several.
type LeaseResult struct {
	Name        string `json:"name"`
	LeaseID     string `json:"lease_id"`
	Status      int    `json:"status"`           // of the response, if it had been asked about alone
	Code        string `json:"code,omitempty"`   // of a refusal
	Detail      string `json:"detail,omitempty"` // for people
	TTLMS       int64  `json:"ttl_ms,omitempty"` // of a lease that was renewed
	ExpiresInMS *int64 `json:"expires_in_ms,omitempty"`
	Author      string `json:"author,omitempty"` // of one that was broken: who took the lock away
	Reason      string `json:"reason,omitempty"` // and why
}

// LeaseResults are what became of several leases, in the order in which they were asked about.
type LeaseResults struct {
	Leases []LeaseResult `json:"leases"`
}
