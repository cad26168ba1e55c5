package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func releaseRequirements() []Requirement {
	return []Requirement{
		{"ReleaseFreesAtOnce", "", nil, releaseFrees,
			"after Release the name must be free at once"},
		{"ReleaseTwiceIsLost", "I6", nil, releaseTwice,
			"the second Release of a lease must answer ErrLost"},
		{"ReleaseOfUnknownIsLost", "I4", nil, releaseOfUnknown,
			"Release of a lease that expired or never was must answer ErrLost"},
		{"ReleaseOfStaleLeavesSuccessor", "I4", nil, releaseOfStale,
			"Release by an earlier holder must answer ErrLost and leave the successor's lease unchanged"},
		{"ReleaseComparesWholeID", "I4", nil, releaseComparesWholeID,
			"Release must compare the lease ID whole"},
		{"CancelStopsLateAcquire", "I5", nil, cancelStopsLateAcquire,
			"an acquire that arrives after its own cancel must be answered Cancelled and leave no lease"},
		{"CancelEndsLease", "I5", nil, cancelEndsLease,
			"a cancel must end the lease that was granted already, and stop a late repeat of its acquire"},
		{"CancelIsRemembered", "I5", nil, cancelIsRemembered,
			"the store must remember a cancelled lease ID for TombstoneTTL"},
		{"CancelLeavesOthers", "I4", nil, cancelLeavesOthers,
			"a cancel must touch no other lease"},
	}
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
	for _, other := range near(l) {
		t.lost("Release with another digit in the lease ID", t.release(other))
	}
	t.live(l)
}

// mustBeCancelled makes one attempt whose outcome must be Cancelled.
func (t *T) mustBeCancelled(req driver.AcquireRequest) {
	t.Helper()
	reply := t.acquire(req)
	t.need(reply.Outcome == driver.Cancelled && reply.Token == 0, "acquire after its cancel: %s, token %d, want cancelled", outcome(reply), reply.Token)
}

func cancelStopsLateAcquire(t *T) {
	late := ask("a", t.units(8))
	t.lost("Cancel of a lease that is not there yet", t.cancel(late))
	t.free("a")
	for range 2 {
		t.mustBeCancelled(late)
	}
	t.free("a")
	t.take("a", t.units(8))
}

func cancelEndsLease(t *T) {
	l := t.take("a", t.units(8))
	t.must("Cancel of a live lease", "a", t.cancel(l.AcquireRequest))
	t.free("a")
	t.mustBeCancelled(l.AcquireRequest)
	t.free("a")
}

// cancelIsRemembered waits almost for TombstoneTTL in virtual time. In real time a minute would be
// too long for a test.
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
