// Package quorumlock makes one engine of several independent stores (the idea known as Redlock,
// with fencing tokens). A client holds a lock if a majority of the stores grants it, so that the
// lock survives the loss of the others.
//
// # What
//
// The stores must be independent: N masters without replication between them, each on its own
// machine. N is odd and at least 3. Of 3, one may be down at a time; of 5, two. Locks are exclusive
// only, and there is no queue: a waiter retries after a random pause.
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
// Tokens strictly grow from one holder to the next, whatever happens to clocks, networks and
// expiries, and even if a store loses all its data, unless its clock is set back by more than half
// of MaxTTL. docs/quorum.md has the protocol, and docs/adr/0032-the-rules-of-a-quorum.md the proof.
//
// # What is not promised
//
// As with every lock that has a time limit, mutual exclusion needs more: the clocks of the stores
// must run at the right speed. If more than a minority of the stores are down, or were started or
// have lost their memory within MaxTTL, no lock can be acquired.
//
// # Clocks
//
// Each store ends its leases by its own clock. A client's clock only proposes tokens: if it is off,
// that costs a round trip, and not safety.
//
// # Fencing
//
// The guards of packages fence, sqlfence, httpfence and redisfence check a quorum's
// tokens like any others. They are even numbers.
//
// # Errors
//
// [ErrNoQuorum], which wraps driver.ErrUnavailable, quotes the first member's error. If it is
// unknown whether a majority has accepted, the error is ErrOutcomeUnknown, and the engine withdraws
// the request in the background.
//
// # Testing
//
// Members of package memlock make a quorum in virtual time. The repository has a conformance suite
// for members of other stores.
//
// # The first start
//
// A store that has lost its memory, or is new, grants nothing for MaxTTL. It detects this itself;
// the servers need no set-up. For new stores Engine.Admit ends that time at once.
//
// MaxTTL must be the same in all clients of a quorum.
//
// # Cost
//
// Each request goes to all members at once and ends as soon as a majority has decided it: a slow or
// dead member costs nothing. An acquire takes one round trip if the client's clock is within a
// second of the members', and two otherwise.
//
// # Concurrency
//
// An Engine is safe for concurrent use. A request runs one goroutine for each member, which
// ends with the member's answer or after the time limit. Clean-up runs one more for each
// member that does not answer. Close ends them all.
package quorumlock
