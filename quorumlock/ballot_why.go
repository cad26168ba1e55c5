package quorumlock

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// blocker describes what the request waits for: of the leases in the way, the
// one by whose end a majority would be free. That is an estimate: the leases may
// be extended, or those of rivals that withdraw at once. Whose it is, and
// since when, is what the member says that has had it for the longest: others were
// asked later, or have been repaired.
func (b *ballot) blocker() driver.Blocker {
	var held []driver.ProposeReply
	free := 0
	for _, a := range b.answers {
		switch {
		case a.free():
			free++
		case a.is(driver.VoteHeld):
			held = append(held, a.reply)
		}
	}
	if len(held) == 0 {
		return driver.Blocker{}
	}
	slices.SortStableFunc(held, func(a, b driver.ProposeReply) int { return cmp.Compare(ends(a.ExpiresIn), ends(b.ExpiresIn)) })
	// As many of them have to end as are missing to a majority.
	way := held[min(max(b.quorum-free, 1), len(held))-1]
	w := way.Blocker
	for _, other := range held {
		if other.Rival == way.Rival && other.Since > w.Since {
			w.Holder, w.Since = other.Holder, other.Since
		}
	}
	w.Place, w.Queue = 0, 0 // a member may have a queue; the quorum has none
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
		case a.is(driver.VoteQuarantined):
			quarantined = max(quarantined, a.reply.Remaining)
		}
	}
	return missing(errs, b.quorum, len(b.answers), quarantined)
}
