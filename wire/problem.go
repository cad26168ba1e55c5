package wire

// A Problem is the body of a refusal over HTTP, as in RFC 9457. Package
// wire/problem writes it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"` // for programs

	ResponseStatus int    `json:"response_status,omitempty"` // of a response that was not kept
	Token          uint64 `json:"token,omitempty"`           // the fencing token that was refused
	Current        uint64 `json:"current,omitempty"`         // the resource's mark, if it is known

	Holders     []Blocker `json:"holders,omitempty"`      // who has the lock; of several, the one whose lease ends first
	QueueLength *int      `json:"queue_length,omitempty"` // how many wait for it
	Place       int       `json:"place,omitempty"`        // of the request when its wait ended: it has given it up
	Author      string    `json:"author,omitempty"`       // who took the lock away
	Reason      string    `json:"reason,omitempty"`       // and why
}
