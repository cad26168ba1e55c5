package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func keepRequirements() []Requirement {
	return []Requirement{
		{"KeepForClosesName", "", nil, keepForCloses,
			"after a release with KeepFor nobody, the released lease ID included, must be granted the name before"},
		{"KeepForEnds", "", nil, keepForEnds,
			"the name must be free soon after KeepFor, whatever was left of the lease"},
		{"KeepForEndsLease", "I4", nil, keepForEndsLease,
			"during KeepFor the lease has ended: Extend must answer ErrLost, Inspect must report Released"},
		{"KeepForNeedsLease", "I4", nil, keepForNeedsLease,
			"KeepFor must not close the name of a lease that is lost"},
		{"KeepForObeysCancel", "I5", nil, keepForWithCancel,
			"a release with KeepFor and Cancel must close the name and stop a late repeat of the acquire"},
		{"KeepForNotLengthenedByRepeat", "I6", nil, keepForRepeat,
			"a repeated Release must not lengthen KeepFor"},
		{"KeepForHoldsQueue", "I7", canQueue, keepForHoldsQueue,
			"during KeepFor the queue must wait, and after it the first must be granted"},
		{"KeepForOfSharedLetsSharedIn", "", canShare, keepForOfShared,
			"a shared lease that is kept closed must keep exclusive requests out, and no shared ones"},
		{"KeepForOfPermitsKeepsThem", "", canCount, keepForOfPermits,
			"permits that are kept closed must be missing to others, and no more than those"},
	}
}

// mustKeep releases a lease with KeepFor, which must succeed.
func (t *T) mustKeep(l lease, keepFor time.Duration) {
	t.Helper()
	t.must("Release with KeepFor", l.Name, t.end(l, driver.ReleaseRequest{KeepFor: keepFor}))
}

func keepForCloses(t *T) {
	l := t.take("a", t.units(2))
	start := time.Now()
	t.mustKeep(l, t.units(4))
	t.refuse(l.AcquireRequest)
	next := t.eventually(ask("a", t.units(8)), t.units(8))
	open := next.answered.Sub(start)
	t.want(open >= t.units(4)-early, "granted %s after a release with KeepFor %s", open, t.units(4))
}

func keepForEnds(t *T) {
	t.mustKeep(t.take("a", t.units(40)), t.units(1))
	t.eventually(ask("a", t.units(8)), t.units(4))
}

func keepForEndsLease(t *T) {
	l := t.take("a", t.units(4))
	t.mustKeep(l, t.units(8))
	t.lost("Extend during KeepFor", t.extend(l, t.units(40)))
	if canQueue(t) {
		t.lost("Refresh during KeepFor", t.refresh(l.AcquireRequest, t.units(40)).Err)
	}
	lock := t.inspect("a")
	t.need(len(lock.Holders) == 1 && lock.Holders[0].Released, "during KeepFor: holders %+v, want one that is released", lock.Holders)
	t.atMost("KeepFor", lock.Holders[0].ExpiresIn, t.units(8))
}

func keepForNeedsLease(t *T) {
	gone := t.take("a", t.units(8))
	t.mustRelease(gone)
	for _, l := range []lease{gone, {AcquireRequest: ask("never", 0)}} {
		t.lost("Release with KeepFor of a lost lease", t.end(l, driver.ReleaseRequest{KeepFor: t.units(40)}))
		t.free(l.Name)
	}
}

func keepForWithCancel(t *T) {
	l := t.take("a", t.units(8))
	t.must("Release with KeepFor and Cancel", "a", t.end(l, driver.ReleaseRequest{KeepFor: t.units(8), Cancel: true}))
	t.refused("a")
	t.mustBeCancelled(l.AcquireRequest)
}

func keepForRepeat(t *T) {
	l := t.take("a", t.units(8))
	t.mustKeep(l, t.units(8))
	t.mayBeLost("second Release with KeepFor", "a", t.end(l, driver.ReleaseRequest{KeepFor: t.units(40)}))
	lock := t.inspect("a")
	t.want(len(lock.Holders) == 1 && lock.Holders[0].ExpiresIn <= t.units(8)+t.slack(),
		"after the repeat: holders %+v, want one that ends within %s", lock.Holders, t.units(8))
}

func keepForHoldsQueue(t *T) {
	l := t.take("a", t.units(400))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	t.mustKeep(l, t.units(2))
	t.atMost("KeepFor, as the head of the queue learns,", t.waits(first, 1).ExpiresIn, t.units(2))
	t.waiting("a", first, second)
	time.Sleep(t.units(2) + t.slack())
	t.waits(second, 1)
	t.above(l.token, t.handed(first))
}

func keepForOfShared(t *T) {
	l := t.grant(askShared("a", t.units(40)))
	t.mustKeep(l, t.units(8))
	t.lost("Extend during KeepFor", t.extend(l, t.units(40)))
	t.refused("a")
	reader := t.grant(askShared("a", t.units(40)))
	t.mustRelease(reader)
	t.refused("a")
	lock := t.inspect("a")
	t.want(len(lock.Holders) == 1 && lock.Holders[0].Released && lock.Mode == lockinfo.Shared, "lock = %+v, want one shared lease that is released", lock)
}

func keepForOfPermits(t *T) {
	l := t.grant(askPermits("a", 2, 5, t.units(40)))
	t.mustKeep(l, t.units(8))
	t.refuse(askPermits("a", 4, 5, t.units(8)))
	t.grant(askPermits("a", 2, 5, t.units(40)))
	t.grant(askPermits("a", 1, 5, t.units(40)))
	t.refuse(askPermits("a", 1, 5, t.units(8)))
	lock := t.inspect("a")
	t.want(len(lock.Holders) == 3 && lock.Holders[0].Released && lock.Holders[0].Mode == l.Mode && lock.Mode == lockinfo.Permits(5, 5),
		"mode %s, holders %+v, want 5 of 5 permits and 3 holders, of them the first released with 2 permits", lock.Mode, lock.Holders)
}
