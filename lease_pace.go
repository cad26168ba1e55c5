package holdfast

import "time"

// When renewals are sent, as parts of the TTL. A lease is renewed when a third
// of its TTL is over, and again while no answer comes, so that several
// renewals fit before the deadline even if the store takes almost half of the
// TTL to answer.
const (
	renewalRemaining = 2.0 / 3 // a renewal is due when so much is left
	unansweredPart   = 6       // 1/6 after a renewal without an answer, the next
	retryDivisor     = 20      // 1/20 after a renewal that failed, the next
	batchingPart     = 10      // a renewal due within 1/10, or 1/10 of the pace, joins a batch that goes out now

	// A lease that was handed over has used up part of its time, but not
	// more than a half unless refreshes of its place failed.
	confirmRemaining = 1.0 / 2
)

// confirmAfter is when a lease that was handed over asks for its whole TTL:
// after long enough for short work to be done without that request.
const confirmAfter = 100 * time.Millisecond

// A renewal is also how a holder learns that its lease was deleted. So one with
// a long TTL is renewed sooner than it would have to be, as long as all of that
// costs the client no more than hurriedPerSecond.
const (
	hurriedPause     = 5 * time.Second
	hurriedPerSecond = 200
)

// pace returns how long the keep-alive leaves a lease without a renewal: 5 s,
// but with more than 1,000 leases in proportion to their number.
func (k *keeper) pace() time.Duration {
	return max(hurriedPause, time.Duration(k.size.Load())*(time.Second/hurriedPerSecond))
}

// renewalDueLocked returns when l has to be renewed, because little of its time
// is left or because the last renewal was long ago.
func (l *Lease) renewalDueLocked() time.Time {
	part := renewalRemaining
	if l.brief {
		part = confirmRemaining
	}
	due := l.deadline.mono.Add(-time.Duration(float64(l.presentTTLLocked()) * part))
	return earlier(due, l.confirmed.Add(l.client.keeper.pace()))
}

// joinsLocked returns how much sooner a renewal of l may go out together with
// others.
func (l *Lease) joinsLocked() time.Duration {
	return min(l.presentTTLLocked(), l.client.keeper.pace()) / batchingPart
}

// retryLocked returns when a renewal that has failed is to be repeated.
func (l *Lease) retryLocked(now time.Time) time.Time {
	pause := min(l.presentTTLLocked()/retryDivisor, l.client.keeper.pace())
	return earlier(l.renewAt, now.Add(pause))
}

// presentTTLLocked returns what l's renewals are timed by: its TTL, but until
// it has that no more than a waiter TTL.
func (l *Lease) presentTTLLocked() time.Duration {
	if l.brief {
		return min(l.opts.TTL, waiterTTLLongest)
	}
	return l.opts.TTL
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
