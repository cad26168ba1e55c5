package enginetest

import (
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
	t.mustCancel(late)
	if t.harness.Bubble == nil {
		time.Sleep(t.units(4))
	} else {
		time.Sleep(driver.TombstoneTTL - time.Second)
	}
	t.mustBeCancelled(late)
}

func cancelLeavesOthers(t *T) {
	l := t.take("a", t.units(8))
	t.mustCancel(ask("a", t.units(8)))
	t.live(l)
}
