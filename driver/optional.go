package driver

import (
	"context"
	"iter"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Downgrader is an engine with Capabilities.Shared: it can turn an exclusive
// lease into a shared one.
type Downgrader interface {
	// Downgrade turns a live exclusive lease into a shared one in one step:
	// its token and expiry stay unchanged, no other request is granted in between,
	// and shared requests at the head of the queue are granted in the same
	// step. It must answer ErrLost and change nothing unless the lease is
	// live, and do nothing if it is shared already (INVARIANT I6).
	Downgrade(ctx context.Context, req DowngradeRequest) error
}

// A DowngradeRequest is a request to make one lease shared.
type DowngradeRequest struct {
	Name    string           `json:"name"`
	LeaseID lockinfo.LeaseID `json:"lease_id"`
}

// An AllAcquirer is an engine with Capabilities.AcquireAll: it can take several
// locks in one step.
type AllAcquirer interface {
	// AcquireAll makes one attempt to take all locks, in one step: it must
	// record all the leases, each as Acquire would, or none. The names are
	// guaranteed to differ, Queue and Once not to be set, and the number to be
	// 1 to MaxBatch. An engine that cannot take these names in one step must
	// answer ErrUnsupported and change nothing.
	AcquireAll(ctx context.Context, reqs []AcquireRequest) (AllReply, error)
}

// An AllReply is the answer to AcquireAll.
type AllReply struct {
	Outcome Outcome                   `json:"outcome"`          // Granted, or what stopped the first request that could not be granted
	Tokens  []uint64                  `json:"tokens,omitempty"` // if Granted, in the order of the requests
	Refused int                       `json:"refused,omitzero"` // otherwise: the index of that request
	Blocker `json:"blocker,omitzero"` // if Held
}

// A Lister is an engine with Capabilities.List: it can list the names it knows.
type Lister interface {
	// List must yield the locks whose names begin with prefix and that have a
	// holder or a place, in no particular order, each at most once. Each step
	// on the store must be bounded. Names that come or go meanwhile may be
	// missed. An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error]
}

// Listed implements List, or ListRecords, for an engine that reads everything at once. It
// yields what read returns, or its error. It calls read when the caller's loop begins, and
// the loop may use the engine.
func Listed[T any](read func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		all, err := read()
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// A Router is an engine with Capabilities.Routes: its store is made of parts that
// can fail one by one, such as the nodes of a Redis Cluster.
type Router interface {
	// Route returns the same number for names that may share a request. A batch of Extend or
	// Refresh is guaranteed to have names of one route only, so that a part that hangs does not
	// delay the others (INVARIANT I9).
	Route(name string) uint32
}
