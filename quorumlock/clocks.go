package quorumlock

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// What the engine believes about clocks. Nothing depends on this machine's being
// right (INVARIANT I8): a token from it is a guess, which members refuse that are
// more than guessLead off. The members' clocks bound how far a token may be ahead,
// so that what a member accepted and forgot is behind its clock when its quarantine
// is over. docs/quorum.md, "Loss of memory", has the argument.
const (
	// guessLead is how far a token from this machine's clock may be ahead of a
	// member's, and liftedLead one that MinToken demands, or counters that it has
	// lifted. For what follows from the members' clocks see Engine.lead.
	guessLead  = time.Second
	liftedLead = driver.MaxTokenLead + time.Minute
)

// lead is how far ahead of a member's clock a token may be that follows from what
// the members told, unless MinToken has lifted them. INVARIANT I2: it is less
// than the quarantine, so that a member that lost its memory accepts nothing
// below what it accepted before, however far the members' clocks are apart.
func (e *Engine) lead() time.Duration { return max(e.opts.MaxTTL/2, guessLead) }

// lift returns the Lead of the withdrawal of a token that was proposed with lead.
// The member adds TombstoneTTL, so that a copy of the proposal that is as late is
// still refused; but no withdrawal lifts a counter further than a proposal may.
func (e *Engine) lift(lead time.Duration) time.Duration {
	if lead > e.lead() {
		return lead
	}
	return min(lead, e.lead()-driver.TombstoneTTL)
}

// quarantine is how long a member that lost its memory grants nothing: until
// every lease that it may have forgotten is over, and its clock is past every
// token that it may have accepted. MaxTTL is for the leases, with 1 % for clocks
// that run at different speeds; the rest is a margin for tokens at the edge of what
// members accept.
func (e *Engine) quarantine() time.Duration {
	return e.opts.MaxTTL + e.opts.MaxTTL/100 + 2*(driver.MaxProposalLag+guessLead)
}

// tooLate reports whether a lease of ttl, asked for this long ago, may be over: the
// members count from when the request arrived, but nobody knows when that was.
// INVARIANT I3: the margin is that of a holder's deadline.
func tooLate(took, ttl time.Duration) bool { return took >= ttl-ttl/100-2*time.Millisecond }

// even returns the least even number that is not below token. Tokens are even, so
// that a member can remember a withdrawn one as the odd number above it.
func even(token uint64) uint64 { return token + token&1 }
