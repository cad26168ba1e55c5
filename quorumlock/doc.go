// Package quorumlock makes one engine of several independent stores (the idea
// known as Redlock, with fencing tokens): a lock is held where a majority of
// the stores has it, so that it survives the loss of the others.
//
// # What
//
// The stores must know nothing of each other: N masters without replication
// between them, each on a machine of its own. N is odd and at least 3; of 3,
// one may be down at a time, of 5, two. Locks are exclusive only, and there is no
// queue: whoever waits tries again after a random pause.
//
// # Example
//
//	engine, err := quorumlock.New([]driver.Member{a, b, c}, nil)
//	if err != nil {
//		return err
//	}
//	defer engine.Close()
//	client, err := holdfast.New(engine, nil)
//
// # Guarantees
//
// Tokens strictly grow from one holder to the next, whatever clocks, networks
// and expiries do, and over the loss of all that a store knew, as long as its
// clock is not further off than MaxTTL. docs/quorum.md has the protocol and the
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
// [ErrNoQuorum], which is driver.ErrUnavailable, says what each member answered. Where
// it is unknown whether a majority has accepted, the error is ErrOutcomeUnknown, and what
// there may be is withdrawn in the background.
//
// # Testing
//
// Members of package memlock make a quorum in virtual time; package membertest is the
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
// Each request goes to all members at once and is over as soon as a majority
// has decided it: a member that is slow or dead costs nothing. An acquire is
// one round trip if the client's clock is within a second of the members', and
// two otherwise.
//
// # Concurrency
//
// An Engine is safe for concurrent use. A request runs one goroutine for each
// member, which ends with the member's answer or after the time limit; what
// has to be cleaned up after it, one for each member that does not answer.
// Close ends them all.
//
// # The files
//
// For those who read on. The engine:
//
//	engine.go          Engine, New, Close: what is alive, and until when
//	members.go         a request to all members, and how long each may take
//	clocks.go          how far a token may be from a clock, and for how long a
//	                   member that lost its memory is in quarantine
//	ledger.go          what the engine remembers of its own requests
//	janitor.go         withdraws from one member what should not be there, until
//	                   the member has answered
//	errors.go          why there is no majority
//
// An acquire is an attempt of several rounds, and each round has a ballot:
//
//	acquire.go         Acquire: a repeat is an extension, the rest is an attempt
//	attempt.go         the rounds, by what each ballot says
//	attempt_round.go   one round: propose, and hear the answers
//	attempt_raise.go   the next round, with a greater token
//	attempt_undo.go    what an attempt leaves behind, and how it is taken away
//	ballot.go          the answers of one round, counted
//	ballot_verdict.go  what they say to do: the table of all cases
//	ballot_token.go    which token a majority would accept
//	ballot_why.go      what is in the way, and why nobody takes part
//
// The other requests:
//
//	extend.go          Extend: a batch of renewals to all members
//	extend_count.go    what the members say of each lease
//	extend_repair.go   gives leases back to members that lack them
//	release.go         Release
//	break.go, loss.go  Break, and messages about leases that are over
//	inspect.go, list.go, diagnose.go
//	                   what people see
//
// The protocol is in docs/quorum.md, with the proof, and in systest/model/quorum
// as a model that is searched.
package quorumlock
