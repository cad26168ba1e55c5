package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func keepRequirements() []Requirement {
	return []Requirement{{
		Name:        "KeepForClosesName",
		Explanation: "after a release with KeepFor nobody, the released lease ID included, must be granted the name before",
		Run:         keepForCloses,
	}, {
		Name:        "KeepForEnds",
		Explanation: "the name must be free soon after KeepFor, whatever was left of the lease",
		Run:         keepForEnds,
	}, {
		Name:        "KeepForEndsLease",
		Explanation: "during KeepFor the lease is over: Extend must answer ErrLost, Inspect must say Released",
		Invariant:   "I4",
		Run:         keepForEndsLease,
	}, {
		Name:        "KeepForNeedsLease",
		Explanation: "KeepFor must not close the name of a lease that is lost",
		Invariant:   "I4",
		Run:         keepForNeedsLease,
	}, {
		Name:        "KeepForObeysCancel",
		Explanation: "a release with KeepFor and Cancel must close the name and stop a late repeat of the acquire",
		Invariant:   "I5",
		Run:         keepForWithCancel,
	}, {
		Name:        "KeepForNotLengthenedByRepeat",
		Explanation: "a repeated Release must not lengthen KeepFor",
		Invariant:   "I6",
		Run:         keepForRepeat,
	}, {
		Name:        "KeepForHoldsQueue",
		Explanation: "during KeepFor the queue must wait, and after it the first must be granted",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         keepForHoldsQueue,
	}, {
		Name:        "KeepForOfSharedLetsSharedIn",
		Explanation: "a shared lease that is kept closed must keep exclusive requests out, and no shared ones",
		Needs:       canShare,
		Run:         keepForOfShared,
	}, {
		Name:        "KeepForOfPermitsKeepsThem",
		Explanation: "permits that are kept closed must be missing to others, and no more than those",
		Needs:       canCount,
		Run:         keepForOfPermits,
	}}
}

// mustKeep releases one lease with KeepFor, which must succeed.
func (t *T) mustKeep(l lease, keepFor time.Duration) {
	t.Helper()
	err := t.Engine.Release(t.Context(), driver.ReleaseRequest{Name: l.Name, LeaseID: l.LeaseID, KeepFor: keepFor})
	if err != nil {
		t.Fatalf("Release(%q) with KeepFor: %v", l.Name, err)
	}
}

func keepForCloses(t *T) {
	l := t.take("a", t.units(2))
	start := time.Now()
	t.mustKeep(l, t.units(4))
	t.refuse(l.AcquireRequest)
	next := t.eventually(ask("a", t.units(8)), t.units(8))
	if open := next.answered.Sub(start); open < t.units(4)-early {
		t.Errorf("granted %s after a release with KeepFor %s", open, t.units(4))
	}
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
	if len(lock.Holders) != 1 || !lock.Holders[0].Released {
		t.Fatalf("during KeepFor: holders %+v, want one that is released", lock.Holders)
	}
	if left := lock.Holders[0].ExpiresIn; left > t.units(8)+t.slack() {
		t.Errorf("KeepFor %s lasts for another %s", t.units(8), left)
	}
}

func keepForNeedsLease(t *T) {
	gone := t.take("a", t.units(8))
	t.mustRelease(gone)
	for _, l := range []lease{gone, {AcquireRequest: ask("never", 0)}} {
		err := t.Engine.Release(t.Context(), driver.ReleaseRequest{Name: l.Name, LeaseID: l.LeaseID, KeepFor: t.units(40)})
		t.lost("Release with KeepFor of a lost lease", err)
		t.free(l.Name)
	}
}

func keepForWithCancel(t *T) {
	l := t.take("a", t.units(8))
	err := t.Engine.Release(t.Context(), driver.ReleaseRequest{
		Name: "a", LeaseID: l.LeaseID, KeepFor: t.units(8), Cancel: true,
	})
	if err != nil {
		t.Errorf("Release with KeepFor and Cancel: %v", err)
	}
	t.refused("a")
	t.mustBeCancelled(l.AcquireRequest)
}

func keepForRepeat(t *T) {
	l := t.take("a", t.units(8))
	t.mustKeep(l, t.units(8))
	err := t.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.LeaseID, KeepFor: t.units(40)})
	if err != nil && !errors.Is(err, driver.ErrLost) {
		t.Errorf("second Release with KeepFor: %v", err)
	}
	lock := t.inspect("a")
	if len(lock.Holders) != 1 || lock.Holders[0].ExpiresIn > t.units(8)+t.slack() {
		t.Errorf("after the repeat: holders %+v, want one that ends within %s", lock.Holders, t.units(8))
	}
}

func keepForHoldsQueue(t *T) {
	l := t.take("a", t.units(400))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	t.mustKeep(l, t.units(2))
	if left := t.waits(first, 1).ExpiresIn; left > t.units(2)+t.slack() {
		t.Errorf("the head of the queue is told %s, want %s of KeepFor", left, t.units(2))
	}
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
	if len(lock.Holders) != 1 || !lock.Holders[0].Released || lock.Mode != driver.Shared {
		t.Errorf("lock = %+v, want one shared lease that is released", lock)
	}
}

func keepForOfPermits(t *T) {
	l := t.grant(askPermits("a", 2, 5, t.units(40)))
	t.mustKeep(l, t.units(8))
	t.refuse(askPermits("a", 4, 5, t.units(8)))
	t.grant(askPermits("a", 2, 5, t.units(40)))
	t.grant(askPermits("a", 1, 5, t.units(40)))
	t.refuse(askPermits("a", 1, 5, t.units(8)))
	lock := t.inspect("a")
	if len(lock.Holders) != 3 || !lock.Holders[0].Released || lock.Holders[0].Permits != 2 {
		t.Errorf("holders = %+v, want 3, of them the first released with 2 permits", lock.Holders)
	}
}
