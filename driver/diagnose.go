package driver

import (
	"context"
	"time"
)

// A Diagnoser is an engine with Capabilities.Diagnose: it can tell whether its
// store is fit for locks.
type Diagnoser interface {
	// Diagnose inspects the store, and tries locks under a random name, whose
	// traces it must remove as far as it may. It must not touch any other lock,
	// and must bound how much of the store it reads.
	//
	// Whatever is wrong with the store is a finding, and so is what the store
	// does not let us see. Diagnose must return an error only if the store does
	// not answer at all, or if ctx or req is bad.
	Diagnose(ctx context.Context, req DiagnoseRequest) (Diagnosis, error)
}

// ProbePrefix begins the random names under which the engines of holdfast try locks to
// diagnose their stores, so that whoever shows people what happens can leave that out.
const ProbePrefix = "holdfast-doctor-"

// A DiagnoseRequest says what the store is to be fit for.
type DiagnoseRequest struct {
	// TTL is that of the leases that will be used.
	TTL time.Duration

	// URL is what the engine was opened with. Without it, servers that the
	// engine does not use itself, such as sentinels and their replicas, are
	// left out.
	URL string
}

// A Diagnosis is what Diagnose has found, in the order in which people should
// read it.
type Diagnosis struct {
	Findings []Finding
}

// A Finding is the outcome of one check.
type Finding struct {
	Level  Level
	Key    string // which check: lower-case words with underscores between
	Server string // which of several servers, or empty for the store
	Text   string // what is so, and what to do if it is not well

	// Err says of a Fail which kind of failure it is: it wraps one of the
	// definite errors. Else nil.
	Err error

	Measures map[string]time.Duration // what was measured, by lower-case words with underscores between
	Counts   map[string]int64         // what was counted, in the same way
}

// A Level says how bad a finding is.
type Level int

const (
	OK   Level = iota // as it should be
	Warn              // locks work, and there is a risk, or something could not be looked at
	Fail              // locks do not work
)

func (l Level) String() string {
	return nameOf(l, "Level", "ok", "warn", "fail")
}

// Worst returns the highest level of all findings.
func (d Diagnosis) Worst() Level {
	worst := OK
	for _, f := range d.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}
