package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func downgradeRequirements() []Requirement {
	return []Requirement{
		{"DowngradeLetsSharedIn", "I1", canShare, downgradeLetsSharedIn,
			"Downgrade must make an exclusive lease shared: shared requests come in, and exclusive ones stay out"},
		{"DowngradeKeepsLease", "I2", canShare, downgradeKeepsLease,
			"Downgrade must not change the lease's token and expiry"},
		{"DowngradeTwiceIsOnce", "I6", canShare, downgradeTwice,
			"Downgrade of a lease that is shared must do nothing, and a late repeat of its acquire must not undo it"},
		{"DowngradeOfLostIsLost", "I4", canShare, downgradeOfLost,
			"Downgrade must answer ErrLost and change nothing unless the lease is live"},
		{"DowngradeHandsOver", "I7", both(canShare, canQueue), downgradeHandsOver,
			"Downgrade must grant the shared requests at the head of the queue in the same step"},
		{"DowngradeDoesNotPassExclusive", "I7", both(canShare, canQueue), downgradeBehindExclusive,
			"after Downgrade nobody behind an exclusive request in the queue must be granted the lock"},
	}
}

// downgrade makes a lease shared and returns the engine's error.
func (t *T) downgrade(l lease) error {
	return t.Features.Downgrader.Downgrade(t.Context(), driver.DowngradeRequest{Name: l.Name, LeaseID: l.LeaseID})
}

// mustDowngrade makes a lease shared, which must succeed.
func (t *T) mustDowngrade(l lease) {
	t.Helper()
	t.must("Downgrade", l.Name, t.downgrade(l))
}

func downgradeLetsSharedIn(t *T) {
	l := t.take("a", t.units(40))
	t.mustDowngrade(l)
	t.refused("a")
	reader := t.grant(askShared("a", t.units(40)))
	lock := t.inspect("a")
	t.want(lock.Mode == lockinfo.Shared && len(lock.Holders) == 2, "lock = %+v, want two shared leases", lock)
	t.mustExtend(l, t.units(80))
	t.mustRelease(l)
	t.refused("a")
	t.mustRelease(reader)
	t.take("a", t.units(8))
}

func downgradeKeepsLease(t *T) {
	l := t.grant(t.askWhole("a", t.units(8)))
	time.Sleep(t.units(1))
	t.mustDowngrade(l)
	t.lasts("Inspect after Downgrade", t.units(8), l, func() time.Duration { return t.live(l) })
	h := t.counts("a", 1, l).Holders[0]
	t.sameHolder("Inspect after Downgrade", h.Holder, l.Holder)
	t.want(h.Token == l.token, "token after Downgrade = %d, want %d", h.Token, l.token)
	t.grantedAgain(l.AcquireRequest, l)
}

func downgradeTwice(t *T) {
	l := t.take("a", t.units(40))
	t.mustDowngrade(l)
	t.mustDowngrade(l)
	t.grant(l.AcquireRequest)
	reader := t.grant(askShared("a", t.units(40)))
	t.mustDowngrade(l)
	t.mustDowngrade(reader)
	n := len(t.inspect("a").Holders)
	t.want(n == 2, "%d leases, want 2", n)
}

func downgradeOfLost(t *T) {
	expired := t.take("expired", t.units(1))
	kept := t.take("kept", t.units(40))
	t.mustKeep(kept, t.units(40))
	released := t.take("a", t.units(40))
	t.mustRelease(released)
	l := t.take("a", t.units(40))
	gone := []lease{released, kept, {AcquireRequest: ask("never", 0)}}
	time.Sleep(t.units(2))
	for _, l := range append(append(gone, expired), near(l)...) {
		t.lost("Downgrade of a lease that is not live", t.downgrade(l))
	}
	t.refuse(askShared("a", t.units(8)))
	t.refuse(askShared("kept", t.units(8)))
	t.free("never")
	t.free("expired")
	lock := t.inspect("a")
	t.want(lock.Mode == lockinfo.Exclusive, "mode = %s after Downgrade by others, want %s", lock.Mode, lockinfo.Exclusive)
}

func downgradeHandsOver(t *T) {
	l := t.take("a", t.units(400))
	readers := []driver.AcquireRequest{t.queueShared("a", 1), t.queueShared("a", 2)}
	writer, last := t.queue("a", 3), t.queueShared("a", 4)
	t.mustDowngrade(l)
	first, second := t.handed(readers[0]), t.handed(readers[1])
	t.waiting("a", writer, last)
	for _, l := range []lease{l, first, second} {
		t.waits(writer, 1)
		t.mustRelease(l)
	}
	t.handed(writer)
}

func downgradeBehindExclusive(t *T) {
	l := t.take("a", t.units(400))
	writer, reader := t.queue("a", 1), t.queueShared("a", 2)
	t.mustDowngrade(l)
	t.refuse(askShared("a", t.units(8)))
	t.live(l)
	t.waiting("a", writer, reader)
	t.mustRelease(l)
	t.handed(writer)
	t.waiting("a", reader)
}
