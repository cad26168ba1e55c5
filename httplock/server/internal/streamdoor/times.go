package streamdoor

import "time"

// The times of a stream that holds a lock follow from the TTL of its lease. What they
// are for, and why no order of events lets two clients work at once, is in
// docs/reference/hold-stream.md.
type holdTimes struct{ ttl time.Duration }

// minHoldTTL is the shortest TTL of a lease that a stream can hold: a ping must arrive
// well within a sixth of it.
const minHoldTTL = time.Second

// quiet is how long a client works on without a line. The client enforces that.
func (t holdTimes) quiet() time.Duration { return min(t.ttl/3, 10*time.Second) }

// promise is how long a client may work on after a line, counted from before the server wrote
// it. It is longer than quiet by a fifth: half of that is for a client whose clock is slewed
// back (docs/adr/0026-slewed-clocks.md), and half for a client that reads its clock only once
// a second.
func (t holdTimes) promise() time.Duration { return t.quiet() + t.quiet()/5 }

// ping is the pause between two lines.
func (t holdTimes) ping() time.Duration { return min(t.ttl/6, 5*time.Second) }

// silence is how long lines may be without an acknowledgement before the server gives up the
// client. The server does not release the lease then: the client may have received the lines.
func (t holdTimes) silence() time.Duration { return min(2*t.ttl/3, 20*time.Second) }

// farewell is how long before its deadline a lease is reported lost.
func (t holdTimes) farewell() time.Duration { return t.ttl / 10 }

// tolerance is the largest difference between the expiries of a lease in two looks without a
// renewal between them. It is also how long the first look may take.
func (t holdTimes) tolerance() time.Duration { return t.quiet() / 20 }

// stale is the age of a renewal after which the stream renews again, so that every server that
// holds a lease renews it once in each quiet time: see freeLater. If the quiet time is a third
// of the TTL, the server's client does so anyway. With a longer TTL it renews less often.
func (t holdTimes) stale() time.Duration {
	if t.quiet() == t.ttl/3 {
		return t.ttl
	}
	return t.quiet() - t.ping()
}

// vows reports whether a line may be written when this much of the lease remains. INVARIANT I3
// for a client that only reads lines: the promise of a line ends before the lease does.
func (t holdTimes) vows(remaining time.Duration) bool { return remaining >= t.promise() }

// next returns when the stream has to look again, if this much of the lease remains: to write
// the next ping, the last ping that it may write, or the loss of the lease.
func (t holdTimes) next(remaining time.Duration) time.Duration {
	if !t.vows(remaining) { // a renewal is overdue; write a line as soon as it succeeds
		return max(0, min(t.ping()/5, remaining-t.farewell()))
	}
	if last := remaining - t.promise(); last > 0 {
		return min(t.ping(), last)
	}
	return t.ping() / 5
}
