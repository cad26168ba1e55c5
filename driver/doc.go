// Package driver defines the interface between package holdfast and the engines
// that keep locks in a store. It is for authors of engines, and of wrappers
// around engines. Application code uses package holdfast, which has its own
// names for what its methods return. It only passes an engine from a
// constructor to holdfast.New.
//
// # Where to begin
//
// Six methods make an [Engine]. Each further ability of a store has a flag in [Capabilities]
// and an optional interface: [Queuer], [Downgrader], [AllAcquirer], [Recorder], [Vault],
// [Lister], [Router], [Breaker], [LossTeller], [Diagnoser] and [Historian]. [FeaturesOf]
// resolves the flags of an engine, and [Forward] is the base of a wrapper. [Member] is a
// contract of its own, for one store of a quorum. The page docs/internals/engines.md gives
// the order in which to write an engine.
//
// # How to read the contract
//
// "Must" is the engine's duty, and each one has a case in package enginetest.
// "Is guaranteed" is the caller's duty, so an engine need not check it again.
// The words INVARIANT I1 to I12 refer to ARCHITECTURE.md.
//
// # Time
//
// A request carries durations, never instants: only the store's clock decides
// when a lease ends (INVARIANT I8), and an engine must not read any other
// clock to decide it. Durations are guaranteed to be whole milliseconds and,
// where a range is named, inside it. An engine whose store counts more
// coarsely must round up: an expiry may be late, never early.
//
// # Outcomes
//
// A method that returns no error was carried out. An error that wraps
// [ErrUnavailable], [ErrInvalid], [ErrUnsupported], [ErrPermission],
// [ErrKindMismatch] or [ErrClosed] means that it certainly was not, and that
// the store is unchanged. [ErrLost] is a definite answer as well: the lease
// named in the request is not live. Every other error, a context's included,
// leaves the outcome unknown: the store may have carried the request out, or
// may do so later, when a delayed message arrives. An engine that cannot tell
// must not claim to know.
//
// # Repeats
//
// Because outcomes can be unknown, requests are repeated. Every request must
// have the same effect and the same answer when the store sees it twice, in a
// row or with other requests in between (INVARIANT I6). The lease ID, drawn
// anew for each acquisition, makes that possible.
//
// # Words for engine authors
//
// The engines of this repository name the steps of their work by these words, in
// Go, SQL and Lua alike; docs/internals/engines.md lists the names, and the names of the
// stored fields, next to each other:
//
//   - look: read what a request sees of a name
//   - settle a name: bring it up to date. Purge it, then serve its queue
//   - purge a name: remove its expired leases and places
//   - serve a queue: grant the lock to the first place, and to the next ones, for
//     as long as the live leases allow it
//   - grant: record a new lease, with a new token
//   - lengthen a lease or a place: move its end, but never to an earlier time
//   - end a lease: remove it before its expiry
//   - keep closed: end a lease for its holder, but block other clients with it until
//     KeepFor ends
//   - give a place: put a request at the end of the queue
//   - give up a place: remove it without a grant
//   - rank: which place it is, 1 for the first
//   - tell: send a notice to a waiter, or a loss to a holder
//   - sweep: remove expired entries of all names, a bounded number at a time
//
// Package driver/rules decides by them, for engines whose store cannot decide by
// itself, and package driver/mailbox tells.
//
// # Concurrency
//
// All methods must be safe for concurrent use. They must return soon after
// ctx ends, and must not hold a pooled connection between calls.
package driver
