package driver

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Queuer is an engine with Capabilities.Queue: it keeps the queue of each
// name in the store.
//
// # Handing over
//
// Whenever a lease or a place ends, however the engine learns of it, the first
// of the queue must be granted the lock as soon as the remaining leases allow it,
// then the next, and so on, so that consecutive shared requests are granted
// together. Release, Downgrade and Complete must do that in the step that makes
// room. An event without a request, such as an expiry or a deletion by a foreign client,
// must be noticed by the next Acquire or Refresh for the name, of any client.
// No place is skipped: small requests do not overtake a large one.
//
// If clients that know no queue use the store, an engine may leave a lock free
// for them for up to 20 ms before it hands it over, but only once in 250 ms while
// the lock is contended. A request during that time must be answered Held, with
// Foreign set.
//
// A lease that was handed over must end when the place would have ended, unless
// it is lengthened. So a waiter that died costs the others no more than its
// WaiterTTL, and one that lives can trust the lease for WaiterTTL from when it
// sent its last request that was answered "still queued". Only Extend and a
// repeat of Acquire lengthen it. Its token is drawn when it is handed over, and
// is greater than the place's MinToken.
type Queuer interface {
	// Watch starts to listen for notices to a lease ID that will request a
	// place. It must send nothing, must not block, and must cost next to nothing
	// until a request with Queue is answered Held. A client that wants notices
	// about the place must call it before that request, and must stop the watch
	// later.
	//
	// Notices about a place must reach the engine that sent the last Acquire for
	// it, whichever was first: a client that reconnects repeats the request.
	Watch(id lockinfo.LeaseID) Watch

	// Refresh makes places last at least WaiterTTL from now, without ever
	// shortening them, and reports the outcome of each, in the order of the requests.
	// With a WaiterTTL of 0 it gives a place up, as Release does, but leaves a lease
	// alone: so a waiter that gives up either leaves no place, or learns of the lease.
	//
	// The outcome must be Held, with the place, while the lease ID is queued (or was
	// until it was given up, and then Place is 0), and Granted, with the token, if it was
	// handed the lock. Refresh must leave that lease unchanged: the sender does not know
	// of the lease yet, and a lease that no client learns of must not be in the way for longer
	// than its place would have been. If the lease ID has neither place nor
	// lease, the error must be ErrLost and nothing changes: Refresh must never
	// create either. One failing request must not spoil the others. The
	// length of reqs is guaranteed to be 1 to MaxBatch.
	Refresh(ctx context.Context, reqs []RefreshRequest) []RefreshReply
}

// A RefreshRequest is a request to refresh one place.
type RefreshRequest struct {
	Name      string           `json:"name"`
	LeaseID   lockinfo.LeaseID `json:"lease_id"`
	WaiterTTL time.Duration    `json:"waiter_ttl_ns"` // 10 ms to 30 days; 0 gives the place up
}

// A RefreshReply is the answer to one RefreshRequest.
type RefreshReply struct {
	AcquireReply // if Err is nil
	Err          error
}

// A Watch receives the notices to one waiter's lease ID.
type Watch interface {
	// C delivers notices. They only make waiting shorter: they may come late,
	// twice, or never, so a waiter must also set a timer. A notice that
	// was not received is replaced by a later one, but a grant only by a grant.
	// C must never be closed.
	C() <-chan Notice
	// Stop ends the watch. A second Stop does nothing.
	Stop()
}

// A Notice is one message to one waiter.
type Notice struct {
	// Token is the token of the lease that was handed over, which ends with the
	// place. 0 means that it is time to send a Refresh: notices may have been
	// lost, the lease in the way ends at another time, or the place is gone
	// because of a Complete.
	Token uint64
}

// ShownPlaces is how many places of a long queue Inspect must describe. An
// engine may omit the rest, because reading them would block its store.
const ShownPlaces = 256
