package wire

// A HoldLine is one line of a stream that holds a lock: of the response to
// POST /v1/leases?hold=1.
type HoldLine struct {
	Event string `json:"event"` // queued, acquired, ping, lost, moved, released, refused

	// AtMS is when the line was made, counted from when the server received the request. If
	// the client counts it from when it sent the request, the result is never too late.
	AtMS int64 `json:"at_ms"`

	// In queued, and in refused if a holder is in the way.
	Place       int       `json:"place,omitempty"`
	QueueLength int       `json:"queue_length,omitempty"`
	Holders     []Blocker `json:"holders,omitempty"`

	PingMS  int64 `json:"ping_ms,omitempty"`  // in queued and acquired: the longest time between two lines
	QuietMS int64 `json:"quiet_ms,omitempty"` // in queued and acquired: the lock is lost when no line has come for this time

	// In acquired.
	LeaseID string `json:"lease_id,omitempty"` // secret: it can release the lease
	Name    string `json:"name,omitempty"`
	Mode    string `json:"mode,omitempty"`
	*Token
	TTLMS   int64  `json:"ttl_ms,omitempty"`
	OnClose string `json:"on_close,omitempty"` // what the end of the connection does: release, free_later, run_out
	Renew   string `json:"renew,omitempty"`    // who renews the lease: server, client

	ExpiresInMS *int64 `json:"expires_in_ms,omitempty"` // in acquired, and in ping if the server renews

	// In lost and refused.
	Code   string `json:"code,omitempty"`   // as in a Problem
	Cause  string `json:"cause,omitempty"`  // in lost: deadline, broken, taken, silent, overtaken
	Detail string `json:"detail,omitempty"` // for people
}
