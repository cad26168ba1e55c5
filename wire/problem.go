package wire

// A Problem is the body of a refusal over HTTP, as in RFC 9457. Package
// wire/problem writes it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"` // for programs

	ResponseStatus int    `json:"response_status,omitempty"` // the status of a response that was not kept
	Token          uint64 `json:"token,omitempty"`           // the fencing token that was refused
	Current        uint64 `json:"current,omitempty"`         // the resource's mark, if it is known

	Holders     []Blocker `json:"holders,omitempty"`      // the holder of the lock; of several, the one whose lease ends first
	QueueLength *int      `json:"queue_length,omitempty"` // how many clients wait for it
	Place       int       `json:"place,omitempty"`        // the place that the request has given up at the end of its wait
	Author      string    `json:"author,omitempty"`       // who broke the lock
	Reason      string    `json:"reason,omitempty"`       // why it was broken
}
