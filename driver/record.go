package driver

import (
	"context"
	"iter"
	"time"
)

// A Recorder is an engine with Capabilities.Records: beside a lock it can keep a
// record, which is the result of work that is to be done once.
type Recorder interface {
	// Complete stores the record of a name for the time of Retention and ends
	// the lease, in one step. It must return ErrLost, and change nothing, if
	// the lease is not live (INVARIANT I4), unless it is the one that completed
	// the name: a repeat is not an error (INVARIANT I6). In the same step it
	// must give up the places of requests with Once, and tell their watches.
	Complete(ctx context.Context, req CompleteRequest) error

	// Recall returns the record of a name, or found false if it has none.
	Recall(ctx context.Context, name string) (r Record, found bool, err error)

	// Forget deletes the record of a name, and reports whether there was one.
	// It must not touch any lease.
	Forget(ctx context.Context, name string) (found bool, err error)
}

// A CompleteRequest asks to store the result of the work under one lease.
type CompleteRequest struct {
	Name      string
	LeaseID   LeaseID
	Record    []byte        // guaranteed to be at most MaxRecord long
	Retention time.Duration // 10 ms to 10 years
}

// A Record is what Complete stored.
type Record struct {
	Data      []byte
	ExpiresIn time.Duration // until its retention is over
}

// A RecordLister is an engine with Capabilities.ListRecords: it can tell of records
// without reading them whole.
type RecordLister interface {
	// DescribeRecord tells of the record of a name, or found false if it has none.
	DescribeRecord(ctx context.Context, name string) (r RecordInfo, found bool, err error)

	// ListRecords must yield the same of the records of all names that begin with
	// prefix, in no particular order, each at most once. It must not hold the store
	// up for longer than a bounded step at a time. Records that come or go
	// meanwhile may be missed. An error ends the sequence.
	ListRecords(ctx context.Context, prefix string) iter.Seq2[RecordInfo, error]
}

// A RecordInfo is what there is to tell of a record.
type RecordInfo struct {
	Name      string
	Head      []byte // its first RecordHead bytes, or all
	Length    int    // in bytes
	ExpiresIn time.Duration
}

// RecordHead is the length of what RecordInfo shows of a record: room for a header
// in front of the result.
const RecordHead = 2048

// MaxRecord is the greatest length of a record in bytes: 16 MiB and a header.
const MaxRecord = 16<<20 + 4096
