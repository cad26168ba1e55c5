// Package clock reads the local clocks by which a client trusts its leases: the monotonic
// clock, and the boot-time clock, which counts while the machine is suspended.
package clock

import "time"

// An Instant is one moment as two local clocks show it: the monotonic clock,
// which timers follow and time services slew, and the boot-time clock, which also counts
// while the machine is suspended, at a rate that nothing slews; see Reader.
type Instant struct {
	Mono time.Time
	Boot time.Duration // since boot; 0 where the system has no such clock
}

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{i.Mono.Add(d), i.Boot + d}
}

// Reached reports whether i is at or after end on either clock: a suspended
// machine must not trust the clock that slept, nor any machine one that is slow.
func (i Instant) Reached(end Instant) bool {
	return !i.Mono.Before(end.Mono) || i.Boot >= end.Boot && i.Boot != 0
}

// Until returns how long it is from i to end, on the clock that has less left.
func (i Instant) Until(end Instant) time.Duration {
	left := end.Mono.Sub(i.Mono)
	if i.Boot != 0 {
		left = min(left, end.Boot-i.Boot)
	}
	return left
}

// AsOf returns end as seen at now: if the machine was suspended since end
// was worked out, or its monotonic clock was slewed back, timers have to fire sooner.
func (end Instant) AsOf(now Instant) Instant {
	if at := now.Mono.Add(now.Until(end)); at.Before(end.Mono) {
		end.Mono = at
	}
	return end
}

// None replaces a clock that the system does not have.
func None() time.Duration { return 0 }
