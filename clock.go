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
func (c *Client) now() instant {
	mono := time.Now()
	return instant{mono, c.boot.at(mono)}
}

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
