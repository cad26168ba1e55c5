package quorumlock

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
)

// errSpent means that the members require a token that is not above all earlier proposals for the
// lease ID.
var errSpent = errors.New("the lease ID is spent")

// raise starts a round with a greater token. It fails with errSpent if the members require a
// smaller one, because this machine's clock is or was ahead.
//
// INVARIANT I5: the token is above all tokens that this engine has proposed for the lease ID, so
// that no withdrawal of those ends it. It is also above the tokens of other engines' leases with
// this ID, which it replaces once it is granted. The lease ID is spent if that raises the token by
// more than a guess may be off, or too far for a majority.
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

// noToken explains why no token is acceptable to a majority: MinToken is too far ahead for most
// members, or the members' clocks are too far apart.
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

// adjustClock records the members' time if a guess was too far off for most of them, so that the
// next acquire guesses right and takes one round. It ignores members that refused the token because
// of their counters. It uses the median clock of the rest: a minority with wrong clocks has no
// influence.
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
