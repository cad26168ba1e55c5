// Package clock reads the local clocks that decide how long a client trusts its leases: the
// monotonic clock, and the boot-time clock, which counts while the machine is suspended.
package clock

import "time"

// An Instant is one moment on two local clocks. Timers follow the monotonic clock, and time
// services slew it. The boot-time clock also counts while the machine is suspended, at a rate
// that is not slewed; see Reader.
type Instant struct {
	Mono time.Time
	Boot time.Duration // since boot; 0 where the system has no such clock
}

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{i.Mono.Add(d), i.Boot + d}
}

// Reached reports whether i is at or after end on either clock, because one of them may have
// stopped in a suspension, or be slow.
func (i Instant) Reached(end Instant) bool {
	return !i.Mono.Before(end.Mono) || i.Boot >= end.Boot && i.Boot != 0
}

// Until returns the time from i to end, on the clock on which it is shorter.
func (i Instant) Until(end Instant) time.Duration {
	left := end.Mono.Sub(i.Mono)
	if i.Boot != 0 {
		left = min(left, end.Boot-i.Boot)
	}
	return left
}

// AsOf returns end with Mono corrected as of now. If the machine was suspended since end was
// computed, or its monotonic clock was slewed back, Mono is earlier, so that timers fire sooner.
func (end Instant) AsOf(now Instant) Instant {
	if at := now.Mono.Add(now.Until(end)); at.Before(end.Mono) {
		end.Mono = at
	}
	return end
}

// None is a clock for systems without the real one. It returns 0.
func None() time.Duration { return 0 }
