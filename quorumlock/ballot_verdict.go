package quorumlock

import (
	"github.com/holdfast-locks/holdfast/driver"
)

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
func (b *ballot) verdict() (v verdict, firm bool) {
	t := b.tally()
	free := t.accepted + t.refused + t.own // members that could accept some token
	last := t.pending == 0
	switch {
	case t.cancelled:
		return cancelled, true // INVARIANT I5
	case t.accepted >= b.quorum:
		return won, true
	case t.ownMost >= b.quorum:
		return ours, true // INVARIANT I6
	case t.rivalMost >= b.quorum:
		return inUse, true
	case free+t.held+t.pending < b.quorum:
		return unreachable, true
	case free < b.quorum && free+t.held < b.quorum:
		return undecided, false
	case free < b.quorum && b.first():
		return press, last
	case free < b.quorum && last:
		return inUse, true
	case free < b.quorum:
		// It is a split vote, of which we may turn out to be the first, or the
		// rest of a lease that a majority has released already.
		return giveWay, false
	case t.own > 0 && b.mayBeLive():
		if last {
			return ambiguous, true
		}
		return undecided, false
	}
	if _, ok := b.next(); !ok && !last {
		return undecided, false
	} else if !ok && t.held > 0 {
		return inUse, true // the members that are free do not agree on a token
	}
	return raise, t.accepted+t.pending < b.quorum
}

// first says who goes on after a split vote: whoever has the first of the
// members that are in use. All others withdraw, so that one can succeed.
func (b *ballot) first() bool {
	for _, a := range b.answers {
		if a.state != answered {
			continue
		}
		switch a.reply.Vote {
		case driver.VoteAccepted:
			return true
		case driver.VoteHeld:
			return false
		}
	}
	return false
}

// mayBeLive reports whether an earlier lease of ours may be on a majority, as
// far as can be seen from the members that answered. If so, a new token would
// be a second one for the same lease.
func (b *ballot) mayBeLive() bool {
	unseen, own := 0, map[uint64]int{}
	for _, a := range b.answers {
		switch {
		case a.state != answered:
			unseen++
		case a.reply.Vote == driver.VoteOwn:
			own[a.reply.Token]++
		}
	}
	for _, count := range own {
		if count+unseen >= b.quorum {
			return true
		}
	}
	return false
}

// yield notes that the members that have accepted the token are told to forget
// it: they are free, but it counts there no longer.
func (b *ballot) yield(token uint64) {
	for i := range b.answers {
		if a := &b.answers[i]; a.state == answered && a.reply.Vote == driver.VoteAccepted {
			a.reply.Vote, a.reply.Counter = driver.VoteRefused, token|1
		}
	}
}
