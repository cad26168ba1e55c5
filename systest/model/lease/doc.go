// Package lease defines which histories of a lock are legal. It is a model for porcupine:
// clients record their requests and the replies, with times of one clock, and the checker
// searches for an order of the requests that a correct lock could have executed.
//
// # Two modes
//
// Timed is for runs without faults of clocks and data: no lease ends before its deadline. A
// name may be granted to another client only if the blocking lease was released, or if the
// time of the grant, between its call and its return, can be after that deadline.
//
// Fenced is for all faults: a lease may lapse at any time, unnoticed. The rest must still
// hold: tokens strictly grow, a repeat gets the token of the first request, and a displaced
// holder can neither extend nor release.
//
// In both modes a repeat may get a new token only for a reason: the lease was released or
// displaced, its deadline may have passed, the store said that it is lost, or a Fault was
// recorded.
//
// # What is unknown
//
// A request with an unknown outcome may take effect at any later moment, once, or never. A
// search for all these moments takes forever. So the model puts the unknown into the state,
// or removes it from the history, and never branches on it:
//
//   - An acquire that is repeated until it has a reply is one operation, from the first call
//     to the last return. If that took long, an earlier lease of the same ID may have ended
//     meanwhile; it counts as never answered.
//   - An acquire that never has a reply changes nothing that another client could blame on
//     the lock, with one exception: others may find the name held. For that time the model
//     does not ask why. The time ends when the lease ID was cancelled or, if that is not
//     known, when the request has lingered and its lease has ended.
//   - An engine repeats an acquire by itself if it gives up a connection, and so does the
//     library. If one copy was sent before a fault and one after it, either may have made a
//     lease or taken a place that the reply does not report. So an acquire during a fault
//     counts as two, and the other one never has a reply.
//   - An extend changes nothing that is checked.
//   - A release makes the lease doubtful: from its call on, the lease may lapse at any time.
package lease
