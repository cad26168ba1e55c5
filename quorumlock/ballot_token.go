package quorumlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A proposal is a proposed token and its lead.
type proposal struct {
	token uint64
	lead  time.Duration
}

// next returns the proposal for the next round. Its token is the smallest that a majority would
// accept, so that a single member whose clock or counter is far ahead does not matter, or a
// slightly greater one if more members accept that. It is far ahead of the members' clocks only if
// MinToken or counters require it. next returns false if no token is acceptable to a majority, or
// MinToken is too far ahead.
func (b *ballot) next() (p proposal, ok bool) {
	// For each free member, near has the least token above its counter and not before its clock. If
	// the counter or MinToken is ahead of the clock by more than usual, lifted has its successor.
	// lifted is used only if no token in near is acceptable.
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
	// A slightly greater token costs nothing, and all members may accept it.
	for _, candidate := range near {
		if candidate.token <= near[0].token+uint64(guessLead.Microseconds()) {
			p = candidate
		}
	}
	return p, true
}

// acceptable returns the candidates that a majority would accept, the smallest first.
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

// wouldAccept reports whether the member that sent reply would now accept p for a request with
// minToken. The conditions in order: INVARIANT I2, the token is above all that the member has
// accepted; it is not before the member's clock, because the member may have lost its memory; it is
// not too far ahead of the clock, so that a wrong clock lifts no counter; and MinToken is within
// its limit, which the member does not check.
func wouldAccept(reply driver.ProposeReply, p proposal, minToken uint64) bool {
	return p.token > reply.Counter &&
		p.token+uint64(driver.MaxProposalLag.Microseconds()) >= reply.Clock &&
		p.token <= reply.Clock+uint64(p.lead.Microseconds()) &&
		minToken <= reply.Clock+uint64(driver.MaxTokenLead.Microseconds())
}

// leadOf returns how far ahead of the clock of the member that sent reply a token must be allowed
// to be. The member's counter exceeds the usual lead only after MinToken has lifted a token, or a
// clock was set back.
func (b *ballot) leadOf(reply driver.ProposeReply) time.Duration {
	if max(reply.Counter&^1, b.minToken) > reply.Clock+uint64(b.lead.Microseconds()) {
		return liftedLead
	}
	return b.lead
}

// above returns the least token that is greater than token and the tokens of the members'
// leases with this lease ID.
func (b *ballot) above(token uint64) uint64 {
	for _, a := range b.answers {
		if a.is(driver.VoteOwn) {
			token = max(token, a.reply.Token)
		}
	}
	return even(token + 1)
}
