// Package observe has the events of holdfast: of locks, do-once work, one-time tokens,
// guarded resources and schedules.
//
// # What
//
// An [Observer] is a function that is called with each [Event]. Package holdfast has
// aliases of the names that its users need, so that most programs do not import this
// package; metrics and traces that are independent of the library do.
//
// # Example
//
//	client, err := holdfast.New(engine, &holdfast.Options{Observer: holdfast.Observers(
//		counter.Observe,
//		func(e holdfast.Event) {
//			if e.Kind == holdfast.Lost {
//				alert(e.Name, e.Err)
//			}
//		},
//	)})
//
// # Guarantees
//
//   - Order: the events of one acquire and its lease are delivered in the order in which
//     they happened, and no event of a lease follows its end.
//   - Pairs: each Key has at most one Waiting, and then one event for which
//     EndsWait is true; at most one Acquired, and then one for which EndsHold is true,
//     and one of OnceCompleted, OnceFailed and LeaseLeft if the lease is of do-once work,
//     at the latest with its release; and after each OutageBegan an OutageEnded, before the
//     end of the wait. So an Observer that adds one at each beginning and subtracts one at
//     each end knows how many callers wait, and how many leases are held.
//   - Whatever an Observer does, no acquire, renewal, loss or release waits for it.
//   - Delay: an event is delivered within microseconds, unless the Observer is busy with
//     earlier ones. The Close of a client or service waits until all are delivered.
//   - A panic in an Observer is logged, and loses the event of that call.
//
// # What is not promised
//
// Memory is bounded: an Observer that blocks, or is too slow for too long, misses
// events, and their number is logged. Events of a wait or a possession are dropped in pairs:
// both the beginning and the end, or neither.
//
// # Clocks
//
// Event.Time is from the local clock, with a monotonic reading. No decision depends on it.
package observe
