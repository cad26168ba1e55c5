package quorumlock

import "github.com/holdfast-locks/holdfast/driver"

// A verdict is what a ballot says to do.
type verdict int

const (
	undecided   verdict = iota
	won                 // a majority accepted the token
	ours                // a majority has a lease of ours with another token, from an earlier request
	cancelled           // the lease ID was cancelled
	inUse               // others are in the way
	giveWay             // others seem to be in the way: withdraw, and hear the members that are pending
	raise               // enough are free, but not at this token: propose a greater one
	press               // a split vote, and the others are to give way: try again with this token
	ambiguous           // an earlier request may have been granted by members that do not answer
	unreachable         // no majority takes part
)

// verdict says what to do now. If it is not firm, answers that are still
// pending could make it a better one, and are worth a short wait.
//
// The rows are in order: each one reads as if those above it were false. The first
// four are certain whatever else comes; the next five are about others in the way,
// and the rest about a majority that is free.
func (b *ballot) verdict() (v verdict, firm bool) {
	t := b.tally()
	free := t.accepted + t.refused + t.own // members that could accept some token
	last := t.pending == 0
	switch {
	case t.cancelled:
		// INVARIANT I5: whoever cancelled wants no lease of this ID. The cancel is
		// on its way to the other members, those that have accepted included.
		return cancelled, true
	case t.accepted >= b.quorum:
		// INVARIANT I1: no other lease finds a majority beside this one.
		return won, true
	case t.ownMost >= b.quorum:
		// INVARIANT I6: an earlier copy of the request was granted, and its answer
		// was lost. The lease keeps its token.
		return ours, true
	case t.rivalMost >= b.quorum:
		// One lease has a majority: that is a lock, and no split vote.
		return inUse, true

	case free+t.held+t.pending < b.quorum:
		// The rest failed or are in quarantine: no answer to come makes up for them.
		return unreachable, true
	case free < b.quorum && free+t.held < b.quorum:
		// Too few have taken part yet to say whether the lock is free.
		return undecided, false
	case free < b.quorum && b.first():
		// A split vote, and the others see that we are first: they withdraw. A
		// member that is pending may save us the wait.
		return press, last
	case free < b.quorum && last:
		// A split vote of which another is the first, or a lock that less than a
		// majority shows us because the others fail: it is not ours to take.
		return inUse, true
	case free < b.quorum:
		// A split vote, of which we may turn out to be the first, or the rest of
		// a lease that a majority has released already: the members that are
		// pending know. Meanwhile we must not be in the way of whoever is first.
		return giveWay, false

	case t.own > 0 && t.ownMost+t.unseen >= b.quorum:
		// INVARIANT I6: an earlier request may have been granted, with the help of
		// members that have not answered. A greater token now would be a second
		// one for the same lease. Without those members nobody can tell.
		if last {
			return ambiguous, true
		}
		return undecided, false
	}
	switch _, ok := b.next(); {
	case !ok && !last:
		// The members so far do not agree on a token; another may do with one.
		return undecided, false
	case !ok && t.held > 0:
		// They do not agree, but there is somebody to wait for: whoever holds the
		// others. The next attempt may find those free, and in agreement.
		return inUse, true
	}
	// A greater token has a majority, or raise says why none has. As long as the
	// present one may still win, that is cheaper by a round trip.
	return raise, t.accepted+t.pending < b.quorum
}

// first says who goes on after a split vote: whoever has the first of the
// members that are in use. All others withdraw, so that one can succeed. All see
// the members in the same order, so they agree on who it is, but for those whose
// answers are lost or late: then two press, or none, until their rounds are over.
func (b *ballot) first() bool {
	for _, a := range b.answers {
		if a.is(driver.VoteAccepted) || a.is(driver.VoteHeld) {
			return a.is(driver.VoteAccepted)
		}
	}
	return false
}

// yield notes that the members that have accepted the token are told to forget
// it: they are free, but it counts there no longer (INVARIANT I1: what was given
// away belongs to whoever comes next). Their counters will be above it, as after
// any withdrawal.
func (b *ballot) yield(token uint64) {
	for i := range b.answers {
		if a := &b.answers[i]; a.is(driver.VoteAccepted) {
			a.reply.Vote, a.reply.Counter = driver.VoteRefused, token|1
		}
	}
}
