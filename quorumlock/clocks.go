package quorumlock

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Nothing depends on this machine's clock (INVARIANT I8): it only provides a first guess of a
// token. Members refuse the guess if it is more than guessLead off. The members' clocks bound how
// far a token may be ahead, so that after a member's quarantine its clock has passed all tokens
// that it accepted and forgot. docs/adr/0032-the-rules-of-a-quorum.md, "Loss of memory", has the
// argument.
const (
	// guessLead is how far a token from this machine's clock may be ahead of a member's
	// clock. liftedLead is the limit for a token that MinToken has lifted, now or earlier.
	// Engine.lead is the limit for tokens from the members' clocks.
	guessLead  = time.Second
	liftedLead = driver.MaxTokenLead + time.Minute
)

// lead returns how far ahead of a member's clock a token from the members' clocks and counters may
// be, unless MinToken has lifted it. INVARIANT I2: it is less than the quarantine, so that a member
// that lost its memory accepts no token below an earlier one, however far the members' clocks are
// apart.
func (e *engine) lead() time.Duration { return max(e.opts.MaxTTL/2, guessLead) }

// lift returns the Lead for the withdrawal of a token that was proposed with lead. The member adds
// TombstoneTTL, so that it also refuses a copy of the proposal that is this late. But no withdrawal
// lifts a counter further than a proposal may.
func (e *engine) lift(lead time.Duration) time.Duration {
	if lead > e.lead() {
		return lead
	}
	return min(lead, e.lead()-driver.TombstoneTTL)
}

// quarantine returns how long a member that lost its memory grants nothing. By then, every lease
// that it may have forgotten has ended, and its clock has passed every token that it may have
// accepted. MaxTTL is for the leases, with 1 % in reserve; holders already leave a tenth unused for
// clocks of different speed. The rest is a margin for the greatest tokens that members accept.
func (e *engine) quarantine() time.Duration {
	return e.opts.MaxTTL + e.opts.MaxTTL/100 + 2*(driver.MaxProposalLag+guessLead)
}

// tooLate reports whether a lease of ttl that was requested this long ago may have ended. Members
// count from the arrival of the request, which is unknown. INVARIANT I3: the margin is the same as
// for a holder's deadline.
func tooLate(took, ttl time.Duration) bool { return took >= ttl-ttl/10-2*time.Millisecond }

// even returns the least even number that is not below token. Tokens are even: a member records a
// withdrawn token as the next odd number.
func even(token uint64) uint64 { return token + token&1 }
