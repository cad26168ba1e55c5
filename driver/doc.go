// Package driver defines the interface between package holdfast and the
// engines that keep locks in a store. It is for those who write an engine, or
// wrap one. Application code uses package holdfast, which has names of its own
// for all that its methods return, and meets this package only in an engine
// that it hands from a constructor to holdfast.New.
//
// # How to read the contract
//
// "Must" is the engine's duty; each must has a case in package enginetest.
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
// # Concurrency
//
// All methods must be safe for concurrent use. They must return soon after
// ctx ends, and must not hold a pooled connection between calls.
package driver
