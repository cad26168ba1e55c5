package quorumlock

import "github.com/holdfast-locks/holdfast/driver"

// A verdict is the next step after a ballot.
type verdict int

const (
	undecided   verdict = iota
	won                 // a majority accepted the token
	ours                // a majority has a lease of this ID from another request
	spent               // leases of this ID from other requests block it, without a majority
	cancelled           // the lease ID was cancelled
	inUse               // other leases block it
	giveWay             // other leases seem to block it: withdraw, and wait for the pending members
	raise               // enough are free, but not at this token: propose a greater one
	press               // a split vote in which the others must give way: retry with this token
	ambiguous           // an earlier request may have been granted by members that do not answer
	unreachable         // no majority takes part
)

// verdict returns the next step. If it is not firm, missing answers could improve it, and the
// caller waits for them for a short time.
//
// The cases are in order: each assumes that all above it are false. No further answer changes the
// first four. In the next cases no majority is free: three are about leases of this ID from other
// requests, the rest about other leases. In the last cases a majority is free, so that no other
// lease of this ID has a majority.
func (b *ballot) verdict() (v verdict, firm bool) {
	t := b.tally()
	free := t.accepted + t.refused // members that could accept some token
	last := t.pending == 0
	perhaps := t.own > 0 && t.ownMost+t.unseen >= b.quorum // another request may have a majority
	switch {
	case t.cancelled:
		// INVARIANT I5: the caller that cancelled wants no lease of this ID. The cancel is in
		// flight to all other members, including those that have accepted.
		return cancelled, true
	case t.accepted >= b.quorum:
		// INVARIANT I1: no other lease can have a majority now.
		return won, true
	case t.ownMost >= b.quorum:
		// INVARIANT I6: another copy of the request was granted, perhaps by another
		// engine, and its answer was lost. The lease keeps its token.
		return ours, true
	case t.rivalMost >= b.quorum:
		// One lease has a majority: the name is locked, and this is not a split vote.
		return inUse, true

	case free+t.held+t.own+t.pending < b.quorum:
		// The other members failed or are in quarantine, and too few answers are pending.
		return unreachable, true
	case free < b.quorum && free+t.held+t.own < b.quorum:
		// Too few members have answered to decide whether the lock is free.
		return undecided, false
	case free < b.quorum && perhaps && last:
		// INVARIANT I6: another request of this lease ID may have been granted by members that have
		// not answered. Only they can decide it.
		return ambiguous, true
	case free < b.quorum && perhaps:
		return undecided, false
	case free < b.quorum && free+t.own >= b.quorum:
		// The other request was certainly not granted, and this engine must not replace its lease:
		// the engine that proposed the lease withdraws it.
		return spent, last
	case free < b.quorum && b.first():
		// A split vote, and the other attempts see that this one is first: they withdraw. A pending
		// member may make the wait unnecessary.
		return press, last
	case free < b.quorum && last:
		// A split vote in which another attempt is first, or a lock that only a minority reports
		// because the other members fail.
		return inUse, true
	case free < b.quorum:
		// A split vote in which this attempt may be first, or the remains of a lease that a
		// majority has already released: the pending members decide. Meanwhile this attempt must
		// not block the first one.
		return giveWay, false
	}
	switch _, ok := b.next(); {
	case !ok && !last:
		// The members that have answered do not agree on a token; with a pending one they may.
		return undecided, false
	case !ok && t.held > 0:
		// The members do not agree on a token, but another lease has the other members. The next
		// attempt may find those free, and in agreement.
		return inUse, true
	}
	// A greater token has a majority, or raise explains why none has. While the present token may
	// still win, waiting for it saves a round trip.
	return raise, t.accepted+t.pending < b.quorum
}

// first reports whether this attempt continues after a split vote, which it does if it has the
// first of the members in use. All other attempts withdraw, so that one can succeed. All see the
// members in the same order, and so agree on the first. If answers are lost or late, two attempts
// may press, or none, until they run out of rounds.
func (b *ballot) first() bool {
	for _, a := range b.answers {
		if a.is(driver.VoteAccepted) || a.is(driver.VoteHeld) {
			return a.is(driver.VoteAccepted)
		}
	}
	return false
}

// yield records the withdrawal from the members that accepted the token. They are free, and their
// acceptance no longer counts (INVARIANT I1: the next proposal may use them). Their counters are
// above the token, as after any withdrawal.
func (b *ballot) yield(token uint64) {
	for i := range b.answers {
		if a := &b.answers[i]; a.is(driver.VoteAccepted) {
			a.reply.Vote, a.reply.Counter = driver.VoteRefused, token|1
		}
	}
}
