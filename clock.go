package holdfast

import "time"

// An instant is one moment as two local clocks show it: the monotonic clock,
// which timers follow, and the boot-time clock, which also counts while the
// machine is suspended.
type instant struct {
	mono time.Time
	boot time.Duration // since boot; 0 where the system has no such clock
}

// now reads both clocks.
func (c *Client) now() instant { return instant{time.Now(), c.bootClock()} }

func (i instant) add(d time.Duration) instant {
	return instant{i.mono.Add(d), i.boot + d}
}

// reached reports whether i is at or after end on either clock: a suspended
// machine must not trust the clock that slept.
func (i instant) reached(end instant) bool {
	return !i.mono.Before(end.mono) || i.boot >= end.boot && i.boot != 0
}

// until returns how long it is from i to end, on the clock that says less.
func (i instant) until(end instant) time.Duration {
	left := end.mono.Sub(i.mono)
	if i.boot != 0 {
		left = min(left, end.boot-i.boot)
	}
	return left
}

// asOf returns end as it is seen at now: if the machine was suspended since end
// was worked out, timers have to fire sooner.
func (end instant) asOf(now instant) instant {
	if at := now.mono.Add(now.until(end)); at.Before(end.mono) {
		end.mono = at
	}
	return end
}

// noBootClock switches the comparison of boot times off.
func noBootClock() time.Duration { return 0 }

// The part of a TTL that a holder does not use. Its clock and the store's may
// differ in rate: two clocks under correction by NTP differ by 0.1 %, quartz
// adds 0.02 %, and 1 % is generous. The constant covers stores that count in
// milliseconds and timers that fire late.
const (
	driftDivisor = 100
	driftFloor   = 2 * time.Millisecond
)

// trusted returns how long a lease may be trusted, counted from the instant
// before its request was sent. INVARIANT I3: the store counts the same TTL
// from when it received the request, which is later, so the deadline is never
// later than the expiry.
func trusted(ttl time.Duration) time.Duration {
	return ttl - ttl/driftDivisor - driftFloor
}

// ttlFor returns a TTL that is trusted for d; the inverse of trusted.
func ttlFor(d time.Duration) time.Duration {
	return ceilMS((d + driftFloor) * driftDivisor / (driftDivisor - 1))
}
