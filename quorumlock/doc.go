// Package quorumlock makes one engine of several independent stores (the idea
// known as Redlock, with fencing tokens): a lock is held where a majority of
// the stores has it, so that it survives the loss of the others.
//
// # What
//
// The stores must know nothing of each other: N masters without replication
// between them, each on a machine of its own. N is odd and at least 3; of 3,
// one may be down at a time, of 5, two. Locks are exclusive only, and there is no
// queue: a waiter tries again after a random pause.
//
// # Example
//
//	engine, err := quorumlock.New([]driver.Member{a, b, c}, nil)
//	if err != nil {
//		return err
//	}
//	client, err := holdfast.New(engine, nil) // client.Close closes the engine, too
//
// # Guarantees
//
// Tokens strictly grow from one holder to the next, whatever clocks, networks and expiries do,
// and even if a store loses all its data, as long as its clock is not further off than
// MaxTTL. docs/quorum.md has the protocol and the
// proof.
//
// # What is not promised
//
// Mutual exclusion needs more, as with every lock that has a time limit: the clocks
// of the stores must run at the right speed. More than a minority of stores that are
// down, or that have lost their memory within MaxTTL, closes all locks.
//
// # Clocks
//
// Each store ends its leases by its own clock. A client's clock only proposes tokens:
// one that is off costs a round trip, and not safety.
//
// # Fencing
//
// The guards of packages fence, sqlfence, httpfence and redisfence check a quorum's
// tokens like any others. They are even numbers.
//
// # Errors
//
// [ErrNoQuorum], which is driver.ErrUnavailable, contains the first member's error. If it is
// unknown whether a majority has accepted, the error is ErrOutcomeUnknown, and the engine
// withdraws the request in the background.
//
// # Testing
//
// Members of package memlock make a quorum in virtual time; the repository has a
// conformance suite for members of other stores.
//
// # The first start
//
// A store that has lost its memory, or never had one, grants nothing for
// MaxTTL. It is recognised by itself; the servers need no set-up. For stores
// that are new Engine.Admit ends that time at once.
//
// MaxTTL must be the same in all clients of a quorum.
//
// # Cost
//
// Each request goes to all members at once and ends as soon as a majority has decided it: a
// slow or dead member costs nothing. An acquire is
// one round trip if the client's clock is within a second of the members', and
// two otherwise.
//
// # Concurrency
//
// An Engine is safe for concurrent use. A request runs one goroutine for each member, which
// ends with the member's answer or after the time limit. Clean-up runs one more for each
// member that does not answer. Close ends them all.
package quorumlock
