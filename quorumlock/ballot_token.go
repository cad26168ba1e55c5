package quorumlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A proposal is a token as it was proposed.
type proposal struct {
	token uint64
	lead  time.Duration
}

// next returns what to propose in the next round. Of the tokens that a majority
// would accept it is the smallest, so that a member whose clock or counter is
// far ahead of the others' is left behind; except that it goes up a little if
// more members can follow. It is far ahead of the members' clocks only if
// MinToken or counters demand it. It returns false if no majority will accept
// the same token, or MinToken is too far ahead for it.
func (b *ballot) next() (p proposal, ok bool) {
	// For each member that is free, the least token that is above its counter and
	// not behind its clock. If the counter or MinToken is further ahead of the clock
	// than the usual lead, then what follows them is a candidate of its own, which is
	// taken only if no other is acceptable.
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
	// A little more than the least costs nothing, and may take all along.
	for _, candidate := range near {
		if candidate.token <= near[0].token+uint64(guessLead.Microseconds()) {
			p = candidate
		}
	}
	return p, true
}

// acceptable returns those of some proposals that a majority would accept, the
// smallest first. What one member wants, others may refuse.
func (b *ballot) acceptable(candidates []proposal) []proposal {
	candidates = slices.DeleteFunc(candidates, func(p proposal) bool {
		return p.token > driver.MaxToken || b.followers(p) < b.quorum
	})
	slices.SortFunc(candidates, func(a, b proposal) int { return cmp.Compare(a.token, b.token) })
	return candidates
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
// a request with minToken. In order: INVARIANT I2, above all that it accepted; not
// behind its clock, for what it may have forgotten; not too far ahead of it, so
// that a wrong clock lifts no counter; and the limit of MinToken, which the member
// itself does not know.
func wouldAccept(reply driver.ProposeReply, p proposal, minToken uint64) bool {
	return p.token > reply.Counter &&
		p.token+uint64(driver.MaxProposalLag.Microseconds()) >= reply.Clock &&
		p.token <= reply.Clock+uint64(p.lead.Microseconds()) &&
		minToken <= reply.Clock+uint64(driver.MaxTokenLead.Microseconds())
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

// above returns the least token that is greater than token, and than those of
// the lease ID's leases that members have.
func (b *ballot) above(token uint64) uint64 {
	for _, a := range b.answers {
		if a.is(driver.VoteOwn) {
			token = max(token, a.reply.Token)
		}
	}
	return even(token + 1)
}
