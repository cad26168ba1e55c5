package quorumlock

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
)

// errSpent: the members want a token that is not above all that were proposed
// for this lease ID.
var errSpent = errors.New("the lease ID is spent")

// raise starts a round with a greater token, or fails with errSpent if the
// members want a smaller one: this machine's clock is ahead, or was.
//
// INVARIANT I5: the token is above all tokens that this engine has proposed for the lease ID,
// so that none of their withdrawals ends it. It is also above the tokens of other engines'
// leases with this ID, which it replaces once it is granted. The lease ID is spent if that
// lifts the token by more than a guess may be off, or too far for a majority.
func (a *attempt) raise() error {
	want, ok := a.ballot.next()
	if !ok {
		return a.noToken()
	}
	a.adjustClock()
	p := proposal{max(want.token, a.ballot.above(a.present.token)), want.lead}
	if p.token > want.token+uint64(guessLead.Microseconds()) || a.ballot.followers(p) < a.quorum {
		return errSpent
	}
	a.propose(p)
	return nil
}

// noToken explains why no token fits a majority: because MinToken is too far
// ahead for most, or else because the members' clocks are too far apart.
func (a *attempt) noToken() error {
	allowed := 0
	for _, answer := range a.ballot.answers {
		if answer.free() && a.req.MinToken <= answer.reply.Clock+uint64(driver.MaxTokenLead.Microseconds()) {
			allowed++
		}
	}
	if allowed < a.quorum {
		return errMinToken(a.req.MinToken)
	}
	return fmt.Errorf("%w agrees on a token: their clocks are more than %s apart", ErrNoQuorum, a.lead())
}

// adjustClock notes the members' time if a guess was too far off for most, so
// that the next acquire guesses right and takes one round. Only the clocks of
// members count whose counter was not what spoke against the token, and of those
// the middle one: a minority with wrong clocks does not move ours.
func (a *attempt) adjustClock() {
	var clocks []uint64
	for _, answer := range a.ballot.answers {
		if answer.free() && answer.reply.Vote == driver.VoteRefused && answer.reply.Counter < a.present.token {
			clocks = append(clocks, answer.reply.Clock)
		}
	}
	if len(clocks) >= a.quorum && a.present.lead == guessLead {
		slices.Sort(clocks)
		a.ledger.adjust(clocks[len(clocks)/2])
	}
}
