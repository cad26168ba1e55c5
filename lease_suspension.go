package holdfast

import "time"

// While the machine is suspended timers stand still, so that they would end a
// lease too late by just that time. Therefore the lease keeper compares both
// clocks every suspensionLook, as long as there are leases. They are not read at
// one instant: a difference below suspensionShortest is not a suspension.
const (
	suspensionLook     = time.Second
	suspensionShortest = 10 * time.Millisecond
)

// watchSuspensions begins to watch, if the system has a clock for it.
func (k *leaseKeeper) watchSuspensions() {
	boot := k.client.boot.clock()
	k.suspends, k.asleep, k.started = boot != 0, boot, time.Now()
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
	// The boot-time clock first: a pause between the two readings must not look
	// like a suspension.
	boot := k.client.boot.clock()
	now := instant{time.Now(), boot}
	asleep := boot - now.mono.Sub(k.started)
	if asleep-k.asleep < suspensionShortest {
		return
	}
	k.asleep = asleep
	for _, l := range k.table.All() {
		l.wake(now)
		k.putLocked(l)
	}
}

// wake moves the deadline to where the boot-time clock says that it is, and
// makes a renewal due, if the machine was suspended under the lease.
func (l *Lease) wake(now instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = l.term.woken(now)
}
