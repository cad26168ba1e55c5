package streamdoor

import "time"

// The times of a stream that holds a lock follow from the TTL of its lease. What they
// are for, and why no order of events lets two clients work at once, is in
// docs/reference/hold-stream.md.
type holdTimes struct{ ttl time.Duration }

// minHoldTTL is the shortest TTL of a lease that a stream can hold: a ping must arrive
// well within a sixth of it.
const minHoldTTL = time.Second

// quiet is how long a client goes on without a line: the client's rule.
func (t holdTimes) quiet() time.Duration { return min(t.ttl/3, 10*time.Second) }

// promise is how long the server trusts a line to keep the client at work, counted from
// before it was written. It is longer than quiet by a fifth: half of that for a
// client whose clock is slewed back (docs/adr/0026-slewed-clocks.md), and half for one that
// looks at its clock only once a second.
func (t holdTimes) promise() time.Duration { return t.quiet() + t.quiet()/5 }

// ping is the pause between two lines.
func (t holdTimes) ping() time.Duration { return min(t.ttl/6, 5*time.Second) }

// silence is how long lines may be without an acknowledgement before the server gives
// the client up. It does not release then: the client may hear what it does not answer.
func (t holdTimes) silence() time.Duration { return min(2*t.ttl/3, 20*time.Second) }

// farewell is how long before its deadline a lease is reported lost.
func (t holdTimes) farewell() time.Duration { return t.ttl / 10 }

// doubt is the largest difference of two looks at the expiry of a lease without a renewal
// between them, and how long the first look may take.
func (t holdTimes) doubt() time.Duration { return t.quiet() / 20 }

// stale is the age of a renewal after which the stream renews again, so that
// every server that holds a lease renews it once in each quiet time: see freeLater. Where
// that is a third of the TTL, the client of the server does so anyway; with a longer TTL
// and thousands of leases it takes its time.
func (t holdTimes) stale() time.Duration {
	if t.quiet() == t.ttl/3 {
		return t.ttl
	}
	return t.quiet() - t.ping()
}

// vows reports whether a line may be written when so much of the lease remains:
// INVARIANT I3 for a client that hears lines only. What the line promises ends before
// the lease does.
func (t holdTimes) vows(remaining time.Duration) bool { return remaining >= t.promise() }

// next returns when the stream has to look again, if so much of the lease remains: to
// write the next ping, the last one that it may write, or that the lease is lost.
func (t holdTimes) next(remaining time.Duration) time.Duration {
	if !t.vows(remaining) { // a renewal is overdue, and a line as soon as it succeeds
		return max(0, min(t.ping()/5, remaining-t.farewell()))
	}
	if last := remaining - t.promise(); last > 0 {
		return min(t.ping(), last)
	}
	return t.ping() / 5
}
