package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func releaseRequirements() []Requirement {
	return []Requirement{{
		Name:        "ReleaseFreesAtOnce",
		Explanation: "after Release the name must be free at once",
		Run:         releaseFrees,
	}, {
		Name:        "ReleaseTwiceIsLost",
		Explanation: "the second Release of a lease must answer ErrLost",
		Invariant:   "I6",
		Run:         releaseTwice,
	}, {
		Name:        "ReleaseOfUnknownIsLost",
		Explanation: "Release of a lease that expired or never was must answer ErrLost",
		Invariant:   "I4",
		Run:         releaseOfUnknown,
	}, {
		Name:        "ReleaseOfStaleLeavesSuccessor",
		Explanation: "Release by an earlier holder must answer ErrLost and leave the successor's lease unchanged",
		Invariant:   "I4",
		Run:         releaseOfStale,
	}, {
		Name:        "ReleaseComparesWholeID",
		Explanation: "Release must compare the lease ID whole",
		Invariant:   "I4",
		Run:         releaseComparesWholeID,
	}, {
		Name:        "CancelStopsLateAcquire",
		Explanation: "an acquire that arrives after its own cancel must be answered Cancelled and leave no lease",
		Invariant:   "I5",
		Run:         cancelStopsLateAcquire,
	}, {
		Name:        "CancelEndsLease",
		Explanation: "a cancel must end the lease that was granted already, and stop a late repeat of its acquire",
		Invariant:   "I5",
		Run:         cancelEndsLease,
	}, {
		Name:        "CancelIsRemembered",
		Explanation: "the store must remember a cancelled lease ID for TombstoneTTL",
		Invariant:   "I5",
		Run:         cancelIsRemembered,
	}, {
		Name:        "CancelLeavesOthers",
		Explanation: "a cancel must touch no other lease",
		Invariant:   "I4",
		Run:         cancelLeavesOthers,
	}, {
		Name:        "KeepForClosesName",
		Explanation: "after a release with KeepFor nobody must be granted the name before",
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
	}}
}

func releaseFrees(t *T) {
	l := t.take("a", t.units(40))
	t.mustRelease(l)
	t.free("a")
	l = t.take("a", t.units(40))
	t.mustExtend(l, t.units(80))
	t.mustRelease(l)
	t.take("a", t.units(40))
}

func releaseTwice(t *T) {
	l := t.take("a", t.units(40))
	t.mustRelease(l)
	t.lost("second Release", t.release(l))
	t.free("a")
}

func releaseOfUnknown(t *T) {
	t.lost("Release of a name never used", t.release(lease{AcquireRequest: ask("never", 0)}))
	t.free("never")
	expired := t.take("a", t.units(1))
	time.Sleep(t.units(2))
	t.lost("Release of an expired lease", t.release(expired))
	t.free("a")
}

func releaseOfStale(t *T) {
	stale := t.take("a", t.units(8))
	t.mustRelease(stale)
	next := t.take("a", t.units(8))
	t.lost("Release by an earlier holder", t.release(stale))
	t.live(next)
}

func releaseComparesWholeID(t *T) {
	l := t.take("a", t.units(8))
	for _, id := range nearMisses(l.LeaseID) {
		near := l
		near.LeaseID = id
		t.lost("Release with another digit in the lease ID", t.release(near))
	}
	t.live(l)
}

// mustBeCancelled makes one attempt that must be answered Cancelled.
func (t *T) mustBeCancelled(req driver.AcquireRequest) {
	t.Helper()
	if reply := t.acquire(req); reply.Outcome != driver.Cancelled || reply.Token != 0 {
		t.Fatalf("acquire after its cancel: %s, token %d, want cancelled", outcome(reply), reply.Token)
	}
}

func cancelStopsLateAcquire(t *T) {
	late := ask("a", t.units(8))
	t.lost("Cancel of a lease that is not there yet", t.cancel(late.Name, late.LeaseID))
	t.free("a")
	for range 2 {
		t.mustBeCancelled(late)
	}
	t.free("a")
	t.take("a", t.units(8))
}

func cancelEndsLease(t *T) {
	l := t.take("a", t.units(8))
	if err := t.cancel(l.Name, l.LeaseID); err != nil {
		t.Errorf("Cancel of a live lease: %v", err)
	}
	t.free("a")
	t.mustBeCancelled(l.AcquireRequest)
	t.free("a")
}

// cancelIsRemembered waits as long as it can: in real time a minute would be
// too much for a test.
func cancelIsRemembered(t *T) {
	late := ask("a", t.units(8))
	t.callOff(late)
	if t.harness.Bubble == nil {
		time.Sleep(t.units(4))
	} else {
		time.Sleep(driver.TombstoneTTL - time.Second)
	}
	t.mustBeCancelled(late)
}

func cancelLeavesOthers(t *T) {
	l := t.take("a", t.units(8))
	t.callOff(ask("a", t.units(8)))
	t.live(l)
}

func keepForCloses(t *T) {
	l := t.take("a", t.units(2))
	start := time.Now()
	t.mustKeep(l, t.units(4))
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
