// Package lease defines which histories of a lock are legal. It is a model for porcupine:
// clients note their requests and the replies, with the instants of one clock, and the
// checker searches for an order of the requests that a correct lock could have carried
// out.
//
// # Two modes
//
// Timed is for runs in which clocks and data are left alone: no lease ends before its
// deadline. A name may be granted to another client only if the lease in the way was
// released, or if the grant's instant, which lies somewhere between its call and its
// return, can be after that deadline.
//
// Fenced is for all faults: a lease may lapse at any time, unnoticed. The rest must hold
// nevertheless: tokens strictly grow, a repeat gets the token of the first time, and a
// displaced holder can neither extend nor release.
//
// In both modes a repeat may get a new token only with a reason: the lease was
// released or displaced, its deadline may be over, the store said that it is
// lost, or somebody noted a Fault.
//
// # What is unknown
//
// An outcome that is not known may have taken effect at any later moment, once,
// or never. Searching for all these moments takes for ever, so the unknown is
// put into the state, or out of the history, and never branches:
//
//   - An acquire that is repeated until it is answered is one operation, from
//     the first call to the last return. If that took long, an earlier lease of
//     the same ID may have ended meanwhile, and counts as never answered.
//   - One that is never answered changes nothing that another client could
//     hold against the lock, with one exception: others may find the name held.
//     The model does not explain why for that time. The time ends
//     when the lease ID was cancelled, or, where that is not known, when the
//     request has lingered and its lease has ended.
//   - An engine sends an acquire again by itself if it gives a connection up, and
//     so does the library. If one was before a fault and one after it, either may
//     have made a lease or taken a place that the reply does not report. So an
//     acquire during which there was a fault counts as two, and the other one was
//     never answered.
//   - An extend changes nothing that is checked.
//   - A release makes the lease doubtful: from its call on it may lapse at any
//     time.
package lease
