package holdfast

import "time"

// Timers stop while the machine is suspended, so they would end a lease too late by that time.
// They are slow or fast while their clock is slewed. So the lease keeper compares both clocks
// every suspensionLook, as long as there are leases. The two clocks are not read at the same
// instant, so it ignores a difference below suspensionShortest. A difference up to slewedMost may
// come from slewing, which goes on for minutes. It then does not renew, because a renewal every
// second would not help.
const (
	suspensionLook     = time.Second
	suspensionShortest = 10 * time.Millisecond
	slewedMost         = suspensionLook / 5
)

// watchSuspensions begins to compare the clocks, if the system has a boot-time clock.
func (k *leaseKeeper) watchSuspensions() {
	now := k.client.now()
	k.suspends, k.asleep, k.started = now.Boot != 0, now.Boot, now.Mono
	k.table.LongestPause = 0
	if k.suspends {
		k.table.LongestPause = suspensionLook
	}
}

// wakeLocked corrects the leases if the machine was suspended since the last call. INVARIANT I3:
// the context of a lease ends by its deadline, or as soon as the process can notice.
func (k *leaseKeeper) wakeLocked() {
	if !k.suspends {
		return
	}
	now := k.client.now()
	asleep := now.Boot - now.Mono.Sub(k.started)
	k.asleep = min(k.asleep, asleep) // less, if the monotonic clock is slewed forward
	if asleep-k.asleep < suspensionShortest {
		return
	}
	k.asleep = asleep
	for _, l := range k.table.All() {
		l.wake(now)
		k.putLocked(l)
	}
}

// wake corrects the lease after a suspension; see term.woken.
func (l *Lease) wake(now instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = l.term.woken(now)
}
