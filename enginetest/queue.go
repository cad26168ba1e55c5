package enginetest

import (
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func queueRequirements() []Requirement {
	return []Requirement{
		{"QueueServesInOrder", "I7", canQueue, queueServesInOrder,
			"queued requests must be granted in the order in which the store saw them first"},
		{"QueueKeepsPlace", "I7", canQueue, queueKeepsPlace,
			"a repeated request must keep its first place, for WaiterTTL from the last repeat"},
		{"QueuePlaceIsGivenUp", "I7", canQueue, queueGivesUp,
			"a place must be given up WaiterTTL after the last request for it"},
		{"QueuePassesDeadWaiter", "I7", canQueue, queuePassesDead,
			"a waiter that is gone must delay the next by little more than its WaiterTTL"},
		{"PlaceIsNoLease", "I4", canQueue, placeIsNoLease,
			"a lease ID that only has a place must be answered ErrLost by whatever needs a lease, and keep the place"},
		{"QueueGivesEachAPlace", "I7", canQueue, queueContention,
			"of many requests for a place at once each must get one of its own, and be served in its turn"},
		{"QueuedRequestIsGrantedFreeName", "", canQueue, queuedGrantedFree,
			"a request for a place that finds the name free must be granted for its TTL and keep no place"},
		{"QueueRefusesMinTokenTooFarAhead", "I2", canQueue, queueMinTokenTooFar,
			"a MinToken more than MaxTokenLead ahead must be refused with ErrInvalid before a place is given"},
		{"ReleaseLeavesQueue", "I5", canQueue, releaseLeavesQueue,
			"Release must give up the lease ID's place, with Cancel for good"},
		{"SharedDoesNotOvertakeExclusive", "I7", both(canQueue, canShare), sharedDoesNotOvertake,
			"while an exclusive request has a place, shared ones must be refused, though readers hold the lock"},
		{"QueueServesExclusiveAfterReaders", "I7", both(canQueue, canShare), exclusiveAfterReaders,
			"an exclusive request must be granted once the readers before it are gone, and before those behind it"},
	}
}

func queueServesInOrder(t *T) {
	l := t.take("a", t.units(40))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	third := t.queue("a", 3)
	t.waiting("a", first, second, third)
	for _, next := range []driver.AcquireRequest{first, second, third} {
		t.mustRelease(l)
		t.refused("a")
		l = t.handed(next)
	}
	t.waiting("a")
}

func queueKeepsPlace(t *T) {
	t.take("a", t.units(400))
	first := t.queueFor("a", 1, t.units(3))
	second := t.queue("a", 2)
	for range 2 {
		time.Sleep(t.units(2))
		t.placed(second, 2)
		t.placed(first, 1)
	}
	unqueued := first
	unqueued.Queue, unqueued.WaiterTTL = false, 0
	t.refuse(unqueued)
	t.placed(second, 2)
	t.waiting("a", first, second)
}

func queueGivesUp(t *T) {
	t.take("a", t.units(400))
	first := t.queueFor("a", 1, t.units(1))
	second := t.queue("a", 2)
	time.Sleep(t.units(2))
	t.placed(second, 1)
	t.placed(first, 2)
}

func queuePassesDead(t *T) {
	l := t.take("a", t.units(400))
	t.queueFor("a", 1, t.units(2))
	second := t.queue("a", 2)
	t.mustRelease(l)
	t.eventuallyHanded(second, t.units(6))
}

func placeIsNoLease(t *T) {
	holder := t.take("a", t.units(8))
	waiter := t.queue("a", 1)
	l := lease{AcquireRequest: waiter}
	t.lost("Extend of a place", t.extend(l, t.units(80)))
	if canShare(t) {
		t.lost("Downgrade of a place", t.downgrade(l))
	}
	if canRecord(t) {
		t.lost("Complete of a place", t.complete(l, "result", t.units(40)))
		t.unrecorded("a")
	}
	t.atMost("the holder, after requests of a waiter,", t.live(holder), t.units(8))
	t.waiting("a", waiter)
}

// queueContention sends 12 requests at once, through two engines if possible.
func queueContention(t *T) {
	l := t.take("a", t.units(400))
	reqs := make([]driver.AcquireRequest, 12)
	for i := range reqs {
		reqs[i] = forPlace(ask("a", t.units(40)), t.units(40))
	}
	replies := t.acquireAtOnce(reqs, t.another())
	for place := 1; place <= len(reqs); place++ {
		i := slices.IndexFunc(replies, func(r driver.AcquireReply) bool { return r.Place == place })
		t.need(i >= 0 && replies[i].Outcome == driver.Held, "of %d requests at once none was given place %d", len(reqs), place)
		t.mustRelease(l)
		l = t.handed(reqs[i])
	}
}

func queuedGrantedFree(t *T) {
	l := t.grant(forPlace(ask("a", t.units(40)), t.units(4)))
	t.atLeast("a lease that was granted at once", t.live(l), t.units(30))
	t.waiting("a")
	t.queue("a", 1)
}

func queueMinTokenTooFar(t *T) {
	l := t.take("a", t.units(40))
	req := forPlace(ask("a", t.units(8)), t.units(8))
	req.MinToken = l.token + uint64((24 * time.Hour).Microseconds())
	t.acquireFails("a MinToken that is too far ahead", req, driver.ErrInvalid)
	t.waiting("a")
	t.queue("a", 1)
}

func releaseLeavesQueue(t *T) {
	t.take("a", t.units(400))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	third := t.queue("a", 3)
	t.mayBeLost("Release of a place", "a", t.release(lease{AcquireRequest: first}))
	t.placed(second, 1)
	t.mustCancel(second)
	t.placed(third, 1)
	t.mustBeCancelled(second)
	t.queue("a", 2)
}

func sharedDoesNotOvertake(t *T) {
	t.grant(askShared("a", t.units(400)))
	writer := t.queue("a", 1)
	t.refuse(askShared("a", t.units(8)))
	reader := t.queueShared("a", 2)
	t.placed(reader, 2)
	t.waits(reader, 2)
	t.waiting("a", writer, reader)
}

func exclusiveAfterReaders(t *T) {
	first := t.grant(askShared("a", t.units(400)))
	second := t.grant(askShared("a", t.units(400)))
	writer, reader := t.queue("a", 1), t.queueShared("a", 2)
	t.mustRelease(second)
	t.waiting("a", writer, reader)
	t.mustRelease(first)
	l := t.handed(writer)
	t.waiting("a", reader)
	t.mustRelease(l)
	t.handed(reader)
}
