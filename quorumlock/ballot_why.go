package quorumlock

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// blocker describes the lease for which the request waits: the one whose end makes a majority free.
// It is an estimate, because leases may be extended and other attempts withdraw at once. Holder and
// Since are from the member that has had the lease longest: others got it later, or by repair.
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
	// This many leases must end before a majority is free.
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

// ends returns expiresIn as a sort key, with Never last.
func ends(expiresIn time.Duration) time.Duration {
	if expiresIn == lockinfo.Never {
		return math.MaxInt64
	}
	return expiresIn
}

// failure explains a ballot without a majority of answers.
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
