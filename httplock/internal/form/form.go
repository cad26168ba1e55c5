// Package form has the JSON of the requests of engines, as both ends of the wire read
// and write it.
//
// A request is one POST to Base and the name of a method of package driver. Names are
// in snake_case, and durations whole microseconds, in fields that end in _us: a field
// that is not there is zero. The page docs/http-engine.md describes it for others.
package form

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Base is in front of the names of methods.
const Base = "/v1/driver/"

// The methods: each is one of driver.Engine, or of an optional interface, but for two
// streams: Notices of what Watch and OnLoss tell, Events of what OnEvent tells.
const (
	Capable        = "capabilities"
	Acquire        = "acquire"
	AcquireAll     = "acquire-all"
	Extend         = "extend"
	Release        = "release"
	Inspect        = "inspect"
	Refresh        = "refresh"
	Downgrade      = "downgrade"
	List           = "list"
	Break          = "break"
	Breaks         = "breaks"
	Complete       = "complete"
	Recall         = "recall"
	Forget         = "forget"
	DescribeRecord = "describe-record"
	ListRecords    = "list-records"
	Deposit        = "deposit"
	Redeem         = "redeem"
	Peek           = "peek"
	Revoke         = "revoke"
	Prune          = "prune"
	Diagnose       = "diagnose"
	History        = "history"
	Notices        = "news"
	Events         = "events"
)

// The headers of a request.
const (
	// Timeout is how many milliseconds are left for the request.
	Timeout = "Holdfast-Timeout-Ms"

	// Client names an engine: 32 hexadecimal digits, drawn when it was opened. What it
	// is told of its places goes to the stream of Notices with the same.
	Client = "Holdfast-Client"
)

// Budget is how long a request may take from where it began, over all hops. It is well
// below driver.TombstoneTTL, so that no request is carried out after its cancel is
// forgotten (INVARIANT I5).
const Budget = 15 * time.Second

// The kinds of bodies.
const (
	JSON    = "application/json"
	Lines   = "application/x-ndjson" // one JSON value a line
	Problem = "application/problem+json"
)

// A Span is a duration in microseconds. driver.Never stays -1.
type Span int64

// SpanOf rounds up, so that what is left of a lease does not become nothing.
func SpanOf(d time.Duration) Span {
	if d <= 0 {
		return Span(max(d, driver.Never))
	}
	return Span((d + time.Microsecond - 1) / time.Microsecond)
}

// Duration returns s as it was, but for the rounding.
func (s Span) Duration() time.Duration {
	if s < 0 {
		return driver.Never
	}
	return time.Duration(s) * time.Microsecond
}

// Name is the request of Inspect, Breaks, Recall, Forget, DescribeRecord and History.
type Name struct {
	Name string `json:"name"`
}

// Prefix is the request of List and ListRecords.
type Prefix struct {
	Prefix string `json:"prefix"`
}

// Nothing is the request of Capable and Notices, and the reply to what is answered with an
// error only.
type Nothing struct{}

// Found is the reply to Forget.
type Found struct {
	Found bool `json:"found"`
}

// Silence is how long a stream of Notices may say nothing before it is taken for
// broken. The server says every third of it that it is there.
const Silence = 15 * time.Second
