package wire

// A HoldLine is one line of a stream that holds a lock, as POST /v1/leases?hold=1 answers.
type HoldLine struct {
	Event string `json:"event"` // queued, acquired, ping, lost, moved, released, refused

	// AtMS is when the line was made, since the server received the request: no later
	// than the same time since the client sent it, however long the line was under way.
	AtMS int64 `json:"at_ms"`

	// Of queued, and of refused if somebody is in the way.
	Place       int       `json:"place,omitempty"`
	QueueLength int       `json:"queue_length,omitempty"`
	Holders     []Blocker `json:"holders,omitempty"`

	PingMS  int64 `json:"ping_ms,omitempty"`  // of queued and acquired: how often a line comes at least
	QuietMS int64 `json:"quiet_ms,omitempty"` // of queued and acquired: the lock is lost when no line has come for this time

	// Of acquired.
	LeaseID string `json:"lease_id,omitempty"` // secret: it can release the lease
	Name    string `json:"name,omitempty"`
	Mode    string `json:"mode,omitempty"`
	*Token
	TTLMS   int64  `json:"ttl_ms,omitempty"`
	OnClose string `json:"on_close,omitempty"` // what the end of the connection does: release, free_later, run_out
	Renew   string `json:"renew,omitempty"`    // who renews the lease: server, client

	ExpiresInMS *int64 `json:"expires_in_ms,omitempty"` // of acquired, and of ping if the server renews

	// Of lost and refused.
	Code   string `json:"code,omitempty"`   // as in a Problem
	Cause  string `json:"cause,omitempty"`  // of lost, in a word: deadline, broken, taken, silent, overtaken
	Detail string `json:"detail,omitempty"` // for people
}
