package holdfast

import "time"

// Timers stop while the machine is suspended, so they would end a
// lease too late by just that time; and while their clock is slewed they are slow or
// fast. Therefore the lease keeper compares both clocks every suspensionLook, as long as
// there are leases. They are not read at one instant: a difference below
// suspensionShortest is none. One up to slewedMost may come from slewing, which goes on
// for minutes: renewals that are sent every second would not help.
const (
	suspensionLook     = time.Second
	suspensionShortest = 10 * time.Millisecond
	slewedMost         = suspensionLook / 5
)

// watchSuspensions begins to watch, if the system has a clock for it.
func (k *leaseKeeper) watchSuspensions() {
	now := k.client.now()
	k.suspends, k.asleep, k.started = now.Boot != 0, now.Boot, now.Mono
	k.table.LongestPause = 0
	if k.suspends {
		k.table.LongestPause = suspensionLook
	}
}

// wakeLocked makes up for a suspension since the last look. INVARIANT I3: the
// context of a lease ends by its deadline, or as soon as somebody can look.
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

// wake moves the deadline to where the boot-time clock puts it, and
// makes a renewal due, if the machine was suspended under the lease.
func (l *Lease) wake(now instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = l.term.woken(now)
}
