package driver

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Recorder is an engine with Capabilities.Records: it can keep a record of a name,
// apart from its lock. The record is the result of work that must be done once.
type Recorder interface {
	// Complete stores the record of a name for the time of Retention and ends
	// the lease, in one step. It must return ErrLost, and change nothing, if
	// the lease is not live (INVARIANT I4), unless it is the one that completed
	// the name: a repeat is not an error (INVARIANT I6). In the same step it
	// must give up the places of requests with Once, and tell their watches.
	//
	// With Keep it stores the record and changes nothing else: the lease goes on,
	// and has not completed the name. So a repeat after the end of the lease is
	// ErrLost.
	Complete(ctx context.Context, req CompleteRequest) error

	// Recall returns the record of a name, or found false if it has none.
	Recall(ctx context.Context, name string) (r Record, found bool, err error)

	// Forget deletes the record of a name, and reports whether there was one.
	// It must not touch any lease.
	Forget(ctx context.Context, name string) (found bool, err error)

	// DescribeRecord describes the record of a name without reading it whole, or
	// returns found false if the name has none.
	DescribeRecord(ctx context.Context, name string) (r RecordInfo, found bool, err error)

	// ListRecords must yield the descriptions of the records of all names that
	// begin with prefix, in no particular order, each at most once. Each step on
	// the store must be bounded. Records that come or go meanwhile may be missed.
	// An error ends the sequence.
	ListRecords(ctx context.Context, prefix string) iter.Seq2[RecordInfo, error]
}

// A CompleteRequest is a request to store the result of the work under one lease.
type CompleteRequest struct {
	Name      string           `json:"name"`
	LeaseID   lockinfo.LeaseID `json:"lease_id"`
	Record    []byte           `json:"record,omitempty"` // guaranteed to be at most MaxRecord long
	Retention time.Duration    `json:"retention_ns"`     // 10 ms to 10 years
	Keep      bool             `json:"keep,omitzero"`    // store the record, and leave the lease
}

// A Record is what Complete stored.
type Record struct {
	Data      []byte        `json:"data,omitempty"`
	ExpiresIn time.Duration `json:"expires_in_ns,omitzero"` // until its retention ends
}

// A RecordInfo describes a record.
type RecordInfo struct {
	Name      string        `json:"name,omitzero"`
	Head      []byte        `json:"head,omitempty"`  // its first RecordHead bytes, or all
	Length    int           `json:"length,omitzero"` // in bytes
	ExpiresIn time.Duration `json:"expires_in_ns,omitzero"`
}

// RecordHead is how many bytes of a record RecordInfo shows: room for a header
// in front of the result.
const RecordHead = 2048

// MaxRecord is the greatest length of a record in bytes: 16 MiB and a header.
const MaxRecord = 16<<20 + 4096
