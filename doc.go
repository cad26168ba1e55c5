// Package holdfast provides distributed locks that can be trusted: a lock
// taken through it tells its holder in time when it is lost, carries a fencing
// token that only grows, and leaves nothing behind.
//
// A [Client] takes locks from a store through an engine, such as redislock
// for Redis and Valkey, sqlitelock for the processes of one host, or memlock
// for tests. Success is a [Lease]: possession for a time, which the client
// extends in the background until [Lease.Release].
//
//	client, err := holdfast.New(engine, nil)
//	err = client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, l *holdfast.Lease) error {
//		return writeReport(ctx, l.Token())
//	})
//
// # What a lease promises, and what not
//
// While the lease is valid nobody else holds the lock, as long as the store
// keeps its data and its clock runs steadily. The lease's context ends, by a
// local timer, before the store can grant the lock to anybody else. A process
// that is paused just after it looked cannot know, however; only a resource
// that checks the fencing token of each write ([Lease.Token]) refuses a holder
// that wakes up too late. Hand the token on wherever the resource can check
// it.
//
// A Lease is not a sync.Locker, because it can be lost.
//
// # Time
//
// The store's clock alone decides when a lease ends, local monotonic time
// alone how long it is trusted; no wall clock of a client is compared with
// anything.
//
// # Concurrency
//
// A Client and its leases are safe for concurrent use. A client has one timer
// for all its leases, and no goroutine while nothing is due.
//
// # Rooms
//
// For whoever reads the source: the files stand in families, by the first word
// of their names. A good order to read them in:
//
//	errors.go               what callers test for
//	options.go, holder*.go  what a caller wants, and who it says that it is
//	clock.go, clock_*.go    an instant, as two local clocks show it
//	client.go               a Client: what its calls share, and how it ends
//	lease.go                a Lease, as its holder sees it
//	lease_term.go           the arithmetic of it: every deadline is computed here
//	acquire.go              one call of Acquire, from its arguments to its end
//	acquire_attempt.go      one request, and the lease that it brings
//	acquire_*.go            between two requests: the wait, the queue, outages;
//	                        what may not be waited for; several names
//	lease_keepalive.go      who renews leases and ends them, on internal/schedule
//	lease_*.go              renewal, release, downgrade; from one process to another;
//	                        loss, and how it is noticed
//	do.go, lead.go          acquire, work, release; again and again
//	once.go, once_*.go      work that is done at most once
//	every.go, every_*.go    work that is done once for each time of a schedule
//	inspect.go, break.go    other people's locks
//	observe.go, print.go    what is told, and how it is written
//
// A request that is not answered is classified, and repeated, by internal/ask.
package holdfast
