// Package holdfast provides distributed locks that can be trusted: a lock
// taken through it tells its holder in time when it is lost, carries a fencing
// token that only grows, and leaves nothing behind.
//
// # What
//
// A [Client] takes locks from a store through an engine, such as redislock
// for Redis and Valkey, sqlitelock for the processes of one host, or memlock
// for tests. Success is a [Lease]: possession for a time, which the client
// extends in the background until [Lease.Release].
//
//	around a function                Client.Do, Call
//	the same, or skip at once        Client.TryDo, TryCall
//	by hand                          Client.Acquire, Client.TryAcquire
//	several names, or none           Client.AcquireAll
//	readers, a writer, n at a time   AcquireOptions.Mode
//	once, and its result kept        Client.Once, OnceJSON, Client.OnceEvery
//	one of several to lead           Lead
//	what others have                 Client.Inspect, Client.List, Client.Break
//
// A Client and its leases are safe for concurrent use. A client has one timer
// for all its leases, and no goroutine while nothing is due. A Lease is not a
// sync.Locker, because it can be lost.
//
// # Example
//
//	client, err := holdfast.New(engine, nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close(ctx)
//	return client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, l *holdfast.Lease) error {
//		return writeReport(ctx, l.Token())
//	})
//
// # Guarantees
//
// While the lease is valid nobody else holds the lock, as long as the store
// keeps its data and its clock runs steadily. The lease's context ends, by a
// local timer, before the store can grant the lock to anybody else, even if the store
// cannot be reached. A lost lease stays lost, and a late request changes nothing for
// whoever has the lock by then. An acquire that ends without a lease leaves none behind:
// if its reply was lost, it is cancelled in the background. Where the store keeps a queue,
// waiters are served in their order.
//
// # What is not promised
//
// A process that is paused just after it looked cannot know that its lease has ended; nor
// can a lock outlive the store's loss of its data. Then two work at the same time, and
// only a resource that checks tokens is safe: see Fencing. A release that the store
// does not answer may take until the lease's expiry. Work that is done once may be done
// again if its process dies before the result is stored.
//
// # Clocks
//
// The store's clock alone decides when a lease ends, local monotonic time
// alone how long it is trusted; no wall clock of a client is compared with
// anything. The two may differ in rate by 1 %.
//
// # Fencing
//
// Each lease has a token, greater than that of every earlier lease of the name
// ([Lease.Token]). A resource that has seen a greater one refuses the write of a holder
// that wakes up too late. Hand the token on wherever the resource can check it; package
// fence and its subpackages are guards that do.
//
// # Errors
//
// Each error is one line that says what happened to which name, and wraps one of the
// errors here for errors.Is, such as [ErrHeld], [ErrLost] or [ErrUnavailable]. A
// [HeldError] says who has the lock, even if it is the caller's context that has ended the
// wait; beside ErrLost, [ErrMaxHold], [ErrStalled] or [ErrBroken] says why.
// Arguments that are wrong, a client or an engine that is nil, and work that is nil
// are [ErrInvalid], and nothing is sent. Nothing that is printed has a lease ID in it.
//
// # Testing
//
// Package holdfasttest gives a test a client on memory, in the test's virtual time,
// whose locks it can lose and whose store it can break; memlock is the engine behind it.
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
//	history.go              what happened to a lock, and what happens
//	observe.go, print.go    what is told, and how it is written
//
// A request that is not answered is classified, and repeated, by internal/ask.
package holdfast
