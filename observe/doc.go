// Package observe has what holdfast tells of what happens: to locks, do-once work,
// one-time tokens, guarded resources and schedules.
//
// # What
//
// An [Observer] is a function that is called with each [Event]. Package holdfast has
// aliases of what its users need, so that most programs do not import this one; metrics
// and traces that are independent of the library do. docs/observing.md has the table of
// all kinds.
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
//   - Order: the events of one acquire and its lease are told in the order in which
//     they happened, and nothing of a lease after its end.
//   - Pairs: of each Key, Waiting is told at most once, and then one event for which
//     EndsWait is true; Acquired at most once, and then one for which EndsHold is true,
//     and one of OnceCompleted, OnceFailed and Left if the lease is that of do-once work,
//     at the latest with its release; and after each OutageBegan OutageEnded, before the wait
//     is over. So whoever adds one at each beginning and subtracts one at each end
//     knows how many wait, and how many hold, whatever goes wrong.
//   - Whatever an Observer does, no acquire, renewal, loss or release waits for it.
//   - It is told soon: within microseconds, unless it is busy with earlier events.
//     The Close of a client or service waits until all is told.
//   - A panic in an Observer is logged, and costs it the event that it was told.
//
// # What is not promised
//
// Memory is bounded: an Observer that blocks, or is too slow for too long, misses
// events. That is logged, with their number. They are dropped in pairs: of a wait or a
// possession both the beginning and the end, or neither.
//
// # Clocks
//
// Event.Time is the local clock's, with a monotonic reading. No decision rests on it.
package observe
