// Package holdfast provides distributed locks that can be trusted: the holder of a lock
// learns in time when it is lost, each lease carries a fencing token that only grows, and
// a failed acquire leaves no lease in the store.
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
//	once, and its result kept        Client.Once, OnceJSON
//	one of several to lead           Client.Lead
//	at the times of a schedule       Client.Every
//	what others have                 Client.Inspect, Client.List, Client.Break
//	what was done, or broken         Client.Records
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
//	defer client.Close()
//	return client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, l *holdfast.Lease) error {
//		return writeReport(ctx, l.Token())
//	})
//
// # Guarantees
//
// While the lease is valid no other client holds the lock, as long as the store
// keeps its data and its clock runs steadily. The lease's context ends, by a
// local timer, before the store can grant the lock to another client, even if the store
// cannot be reached. A lost lease stays lost, and a late request changes nothing for the
// next holder. An acquire that ends without a lease leaves none in the store:
// if its reply was lost, it is cancelled in the background. Where the store keeps a queue,
// waiters are served in their order.
//
// # What is not promised
//
// A process that is paused just after it has checked its lease cannot know that the lease has
// ended, and a lock does not survive a store that loses its data. Two holders may then work at the
// same time, and only a resource that checks tokens is safe: see Fencing. If the store does
// not answer a release, the lock is free when the lease expires, at the latest. Work that
// is done once may be done again if its process dies before the result is stored.
//
// # Clocks
//
// Only the store's clock decides when a lease ends, and only local monotonic time decides
// how long the holder trusts it. The wall clocks of clients do not matter to a lease. The
// rates of the two clocks may differ by 10 %, which is more than any one time service causes
// when it slews a clock.
//
// # Fencing
//
// Each lease has a token, greater than the token of every earlier lease of the name
// ([Lease.Token]). A resource that has seen a greater one refuses the write of a holder
// that wakes up too late. Pass the token to every resource that can check it. Package
// fence and its subpackages are guards that check it.
//
// # Errors
//
// Each error is one line, with the name and what happened to it, and wraps one of the errors
// here for errors.Is, such as [ErrHeld], [ErrLost] or [ErrUnavailable]. A [HeldError] names
// the holder of the lock, even if the caller's context ended the wait. [ErrMaxHold],
// [ErrStalled] and [ErrBroken] come with ErrLost and give its reason. A wrong argument, and a
// nil client, engine or function, is [ErrInvalid], and nothing is sent. No printed text
// contains a lease ID.
//
// # Testing
//
// Package holdfasttest gives a test a client on memory, in the test's virtual time,
// whose locks it can lose and whose store it can break; its engine is memlock.
package holdfast
