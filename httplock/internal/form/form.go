// Package form defines the requests of engines, and the replies of servers, over HTTP.
//
// A request is one POST to Base and the name of a method of package driver. Its body is
// the JSON of the driver's type, and so is the reply. This package adds the types for
// methods that take or return something other than a struct of package driver.
// docs/reference/http-engine.md describes the protocol for other languages.
package form

import "time"

// Base precedes the names of methods in a path.
const Base = "/v1/driver/"

// Each method is one of driver.Engine or of an optional interface. Hold is Acquire for a
// person. Notices is a stream of notices and losses, Events the stream of driver.Historian.
const (
	Capable        = "capabilities"
	Acquire        = "acquire"
	AcquireAll     = "acquire-all"
	Hold           = "hold"
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

	// Client names an engine: 32 hexadecimal digits, drawn when it was opened. The
	// notices of its places go to the stream of Notices with the same name.
	Client = "Holdfast-Client"
)

// Budget limits the time of a request, from the first client through all servers. It is well
// below driver.TombstoneTTL, so that no request is carried out after its cancel is
// forgotten (INVARIANT I5).
const Budget = 15 * time.Second

// Silence is how long a stream may send nothing before the engine takes it for broken. The
// server sends an empty line every third of that time.
const Silence = 15 * time.Second

// The content types of bodies.
const (
	JSON    = "application/json"
	Lines   = "application/x-ndjson" // one JSON value a line
	Problem = "application/problem+json"
)
