package lease

import (
	"fmt"
	"time"
)

// A Kind is a kind of request.
type Kind int

const (
	Acquire Kind = iota // one attempt, or a wait for the lock; also its repeats
	Extend
	Release
	Cancel // a release of an acquire without a known outcome; it stays cancelled
	Inspect
	Fault // not a request: a fault of the store's data or clock
)

func (k Kind) String() string {
	return [...]string{"acquire", "extend", "release", "cancel", "inspect", "fault"}[k]
}

// An Outcome is what a reply reports.
type Outcome int

const (
	Done      Outcome = iota // granted, extended, released; of Inspect: held by LeaseID
	Held                     // another client has the lock
	Lost                     // the lease is not live; of Inspect: the name is free
	Cancelled                // the lease ID was cancelled
	Unknown                  // the request may have been executed, or may still be
	Failed                   // the request certainly was not executed
)

func (o Outcome) String() string {
	return [...]string{"done", "held", "lost", "cancelled", "unknown", "failed"}[o]
}

// An Op is one request of one client, or one fault. Times are nanoseconds of one monotonic clock
// that all clients share.
type Op struct {
	Client  int
	Name    string // of the lock; a Fault without a name concerns all locks
	Kind    Kind
	LeaseID string
	Call    int64
	Return  int64
	Outcome Outcome
	Token   uint64        // of an Acquire or Inspect that is Done; of an Extend or Release of a turn in a cohort
	TTL     time.Duration // of an Acquire or Extend

	// Deadline is the time until which the client trusts the lease of an Acquire or Extend that
	// is Done.
	Deadline int64

	// LeftFree marks an Acquire with outcome Held although none of our clients may hold the name:
	// the store leaves it free for clients of other libraries for a moment.
	LeftFree bool
}

func (o Op) String() string {
	s := fmt.Sprintf("%s %.6s: %s", o.Kind, o.LeaseID, o.Outcome)
	if o.Token != 0 {
		s += fmt.Sprintf(", token %d", o.Token)
	}
	if o.Deadline != 0 {
		s += fmt.Sprintf(", until %s after the call", time.Duration(o.Deadline-o.Call))
	}
	return s
}
