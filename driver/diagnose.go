package driver

import (
	"context"
	"time"
)

// A Diagnoser is an engine with Capabilities.Diagnose: it can check whether its
// store is fit for locks.
type Diagnoser interface {
	// Diagnose inspects the store, and tries locks under a random name, whose
	// traces it must remove as far as it may. It must not touch any other lock,
	// and must bound how much of the store it reads.
	//
	// Each fault of the store is a finding, and so is each check that the store
	// does not permit. Diagnose must return an error only if the store does not
	// answer at all, or if ctx or req is bad.
	Diagnose(ctx context.Context, req DiagnoseRequest) (Diagnosis, error)
}

// ProbePrefix begins the random names under which the engines of holdfast try locks to
// diagnose their stores, so that programs that display events can leave them out.
const ProbePrefix = "holdfast-doctor-"

// A DiagnoseRequest describes the use that the store must be fit for.
type DiagnoseRequest struct {
	// TTL is the TTL of the leases that will be used.
	TTL time.Duration `json:"ttl_ns"`

	// URL is what the engine was opened with. Without it, servers that the
	// engine does not use itself, such as sentinels and their replicas, are
	// left out.
	URL string `json:"-"`
}

// A Diagnosis is what Diagnose has found, in the order in which people should
// read it.
type Diagnosis struct {
	Findings []Finding
}

// A Finding is the outcome of one check.
type Finding struct {
	Level  Level  `json:"level"`
	Key    string `json:"key"`             // which check: lower-case words with underscores between
	Server string `json:"server,omitzero"` // which of several servers, or empty for the store
	Text   string `json:"text"`            // what was found, and what to do about it

	// Err is the kind of a Fail: it wraps one of the definite errors. It is nil
	// at the other levels.
	Err error `json:"-"`

	Measures map[string]time.Duration `json:"measures_ns,omitempty"` // what was measured, by lower-case words with underscores between
	Counts   map[string]int64         `json:"counts,omitempty"`      // what was counted, in the same way
}

// A Level is how bad a finding is.
type Level int

const (
	OK   Level = iota // as it should be
	Warn              // locks work, and there is a risk, or something could not be checked
	Fail              // locks do not work
)

// Worst returns the highest level of all findings.
func (d Diagnosis) Worst() Level {
	worst := OK
	for _, f := range d.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}
