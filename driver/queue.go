package driver

import (
	"context"
	"time"
)

// A Queuer is an engine with Capabilities.Queue: it keeps the queue of each
// name in the store.
//
// # Handing over
//
// Whenever a lease or a place ends, however that comes to the engine's
// knowledge, the first of the queue must be granted the lock as soon as the
// remaining leases allow it, then the next, and so on, so that consecutive
// shared requests are granted together. Release, Downgrade and Complete must
// do that in the step that makes room. What nobody reports, an expiry or the
// deletion by a foreign client, must be noticed by the next Acquire or Refresh
// for the name, whoever sends it. No place is skipped: a large request is not
// overtaken by small ones behind it.
//
// An engine whose store is used by clients that know no queue may leave a lock
// free for them for up to 20 ms before it hands it over, once in 250 ms at most
// while it is contended; a request that meets it then must be answered Held, and
// Foreign.
//
// A lease that was handed over must end when the place would have ended, until
// it is lengthened: a waiter that died costs the others no more than its
// WaiterTTL, and one that lives can trust the lease for WaiterTTL from when it
// sent its last request that was answered "still queued". Only Extend and a
// repeat of Acquire lengthen it. Its token is drawn
// when it is handed over, and is greater than the place's MinToken.
type Queuer interface {
	// Watch starts to listen for news of a lease ID that will ask for a place.
	// The news of a place must reach the engine that asked for it last with
	// Acquire, whichever asked first: a client that reconnects asks again.
	// It sends nothing, does not block, and costs next to nothing until a
	// request with Queue is answered Held. It must be called before that
	// request; the caller must stop the watch.
	Watch(id LeaseID) Watch

	// Refresh renews places for WaiterTTL from now, without ever shortening
	// them, and reports what has become of each, in the order of the requests.
	//
	// The outcome must be Held, with the place, while the lease ID is queued,
	// and Granted, with the token, if it was handed the lock. Refresh must leave
	// that lease as it is: who sends it does not know of the lease yet, and one
	// that nobody ever hears of must not be in the way of the others for longer
	// than its place would have been. If the lease ID has neither place nor
	// lease the error is ErrLost and nothing changes: Refresh must never
	// create either. One failing request must not spoil the others. The
	// length of reqs is guaranteed to be 1 to MaxBatch.
	Refresh(ctx context.Context, reqs []RefreshRequest) []RefreshReply
}

// A RefreshRequest asks to renew one place.
type RefreshRequest struct {
	Name      string
	LeaseID   LeaseID
	WaiterTTL time.Duration // 10 ms to 30 days
}

// A RefreshReply is the answer to one RefreshRequest.
type RefreshReply struct {
	AcquireReply // if Err is nil
	Err          error
}

// A Watch is one waiter's interest in the news of its lease ID.
type Watch interface {
	// C delivers news. Messages only speed waiting up: they may come late,
	// twice, or never, and whoever waits must also set a timer. Notice that is
	// not received is replaced by later news, but a grant only by a grant. C
	// is never closed.
	C() <-chan Notice
	// Stop ends the watch. A second Stop does nothing.
	Stop()
}

// Notice is one message to one waiter.
type Notice struct {
	// Token of the lease that was handed over, whose TTL runs out with the
	// place. 0 says that it is time to look, with Refresh: messages may have
	// been lost, the lock's holder has changed its end, or, after Complete,
	// the place is gone.
	Token uint64
}
