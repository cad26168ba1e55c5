package driver

import (
	"context"
	"time"
)

// A Recorder is an engine with Capabilities.Records: it can keep a record beside
// a lock, of what came of work that is to be done once.
type Recorder interface {
	// Complete stores the record of a name for the time of Retention and ends
	// the lease, in one step. It must return ErrLost, and change nothing, if
	// the lease is not live (INVARIANT I4), unless it is what completed the
	// name: a repeat is not an error (INVARIANT I6). Places whose request
	// asked for Once are given up in the same step, and their watches told.
	//
	// Length of Record is guaranteed to be at most MaxRecord.
	Complete(ctx context.Context, req CompleteRequest) error

	// Recall returns the record of a name, or found false if it has none. Its
	// retention is over at ExpiresIn.
	Recall(ctx context.Context, name string) (r Record, found bool, err error)

	// Forget deletes the record of a name, and reports whether there was one.
	// It must not touch any lease.
	Forget(ctx context.Context, name string) (found bool, err error)
}

// A CompleteRequest asks to store what came of the work under one lease.
type CompleteRequest struct {
	Name      string
	LeaseID   LeaseID
	Record    []byte
	Retention time.Duration // 10 ms to 10 years
}

// A Record is what Complete stored.
type Record struct {
	Data      []byte
	ExpiresIn time.Duration
}

// MaxRecord is the greatest length of a record in bytes: 16 MiB and a header.
const MaxRecord = 16<<20 + 4096
