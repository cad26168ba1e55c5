package quorumlock

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A ballot is one round of a proposal: what each member has said so far.
type ballot struct {
	quorum   int
	minToken uint64        // of the request
	lead     time.Duration // see Engine.lead
	answers  []answer
}

// An answer is one member's, or that there is none.
type answer struct {
	state answerState
	reply driver.ProposeReply // if answered
	err   error               // if failed
}

type answerState int

const (
	pending answerState = iota
	answered
	failed
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

// A tally counts the answers of a ballot.
type tally struct {
	accepted, refused, own, held, pending int

	// ownToken is the token of an earlier lease of ours that most members have.
	ownToken uint64
	ownMost  int
	// rivalMost is how many members one and the same other lease has.
	rivalMost int
	cancelled bool
}

func (b *ballot) tally() tally {
	var t tally
	own, rivals := map[uint64]int{}, map[driver.LeaseID]int{}
	for _, a := range b.answers {
		if a.state == pending {
			t.pending++
		}
		if a.state != answered {
			continue
		}
		switch a.reply.Vote {
		case driver.VoteAccepted:
			t.accepted++
		case driver.VoteRefused:
			t.refused++
		case driver.VoteOwn:
			t.own++
			own[a.reply.Token]++
			if own[a.reply.Token] > t.ownMost {
				t.ownToken, t.ownMost = a.reply.Token, own[a.reply.Token]
			}
		case driver.VoteHeld:
			t.held++
			rivals[a.reply.Rival]++
			t.rivalMost = max(t.rivalMost, rivals[a.reply.Rival])
		case driver.VoteCancelled:
			t.cancelled = true
		}
	}
	return t
}

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

// yield notes that the members that have accepted the token are told to forget
// it: they are free, but it counts there no longer.
func (b *ballot) yield(token uint64) {
	for i := range b.answers {
		if a := &b.answers[i]; a.state == answered && a.reply.Vote == driver.VoteAccepted {
			a.reply.Vote, a.reply.Counter = driver.VoteRefused, token|1
		}
	}
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

// next returns what to propose in the next round. Of the tokens that a majority
// would accept it is the smallest, so that a member whose clock or counter is
// far ahead of the others' is left behind; except that it goes up a little if
// more members can follow. It is far ahead of the members' clocks only if
// MinToken or counters demand it. It returns false if no majority will accept
// the same token, or MinToken is too far ahead for it.
func (b *ballot) next() (p proposal, ok bool) {
	var near, lifted []proposal
	for _, a := range b.answers {
		if !a.free() {
			continue
		}
		r := a.reply
		near = append(near, proposal{even(max(r.Counter+1, r.Clock, b.minToken+1)), b.lead})
		if b.leadOf(r) == liftedLead {
			lifted = append(lifted, proposal{even(max(r.Counter, b.minToken) + 1), liftedLead})
		}
	}
	if near = b.acceptable(near); len(near) == 0 {
		if lifted = b.acceptable(lifted); len(lifted) == 0 {
			return proposal{}, false
		}
		return lifted[0], true
	}
	for _, candidate := range near {
		if candidate.token <= near[0].token+uint64(guessLead.Microseconds()) {
			p = candidate
		}
	}
	return p, true
}

// leadOf returns how far ahead of its clock the member that sent reply has to
// let a token be. Its counter is further ahead than the usual lead only where a
// token was lifted with MinToken, or a clock was set back.
func (b *ballot) leadOf(reply driver.ProposeReply) time.Duration {
	if max(reply.Counter&^1, b.minToken) > reply.Clock+uint64(b.lead.Microseconds()) {
		return liftedLead
	}
	return b.lead
}

// acceptable returns those of some proposals that a majority would accept, the
// smallest first.
func (b *ballot) acceptable(candidates []proposal) []proposal {
	candidates = slices.DeleteFunc(candidates, func(p proposal) bool {
		return p.token > driver.MaxToken || b.followers(p) < b.quorum
	})
	slices.SortFunc(candidates, func(a, b proposal) int { return cmp.Compare(a.token, b.token) })
	return candidates
}

// above returns the least token that is greater than token, and than those of
// the lease ID's leases that members have.
func (b *ballot) above(token uint64) uint64 {
	for _, a := range b.answers {
		if a.state == answered && a.reply.Vote == driver.VoteOwn {
			token = max(token, a.reply.Token)
		}
	}
	return even(token + 1)
}

// followers counts the members that would accept p.
func (b *ballot) followers(p proposal) int {
	count := 0
	for _, a := range b.answers {
		if a.free() && wouldAccept(a.reply, p, b.minToken) {
			count++
		}
	}
	return count
}

// wouldAccept reports whether the member that sent reply would now accept p for
// a request with minToken.
func wouldAccept(reply driver.ProposeReply, p proposal, minToken uint64) bool {
	return p.token > reply.Counter &&
		p.token+uint64(driver.MaxProposalLag.Microseconds()) >= reply.Clock &&
		p.token <= reply.Clock+uint64(p.lead.Microseconds()) &&
		minToken <= reply.Clock+uint64(driver.MaxTokenLead.Microseconds())
}

// free reports whether the member could accept some token.
func (a *answer) free() bool {
	if a.state != answered {
		return false
	}
	v := a.reply.Vote
	return v == driver.VoteAccepted || v == driver.VoteRefused || v == driver.VoteOwn
}

// blocker describes what the request waits for: of the leases in the way, the
// one by whose end a majority would be free.
func (b *ballot) blocker() driver.Blocker {
	var held []driver.Blocker
	free := 0
	for _, a := range b.answers {
		switch {
		case a.free():
			free++
		case a.state == answered && a.reply.Vote == driver.VoteHeld:
			held = append(held, a.reply.Blocker)
		}
	}
	if len(held) == 0 {
		return driver.Blocker{}
	}
	slices.SortStableFunc(held, func(a, b driver.Blocker) int { return cmp.Compare(ends(a.ExpiresIn), ends(b.ExpiresIn)) })
	w := held[min(max(b.quorum-free, 1), len(held))-1]
	w.Place = 0
	return w
}

// ends returns what is left of a lease, in an order that has Never last.
func ends(expiresIn time.Duration) time.Duration {
	if expiresIn == driver.Never {
		return math.MaxInt64
	}
	return expiresIn
}

// failure explains a ballot that no majority took part in.
func (b *ballot) failure() error {
	var errs []error
	var quarantined time.Duration
	for _, a := range b.answers {
		switch {
		case a.state == failed:
			errs = append(errs, a.err)
		case a.state == answered && a.reply.Vote == driver.VoteQuarantined:
			quarantined = max(quarantined, a.reply.Remaining)
		}
	}
	return missing(errs, b.quorum, len(b.answers), quarantined)
}
