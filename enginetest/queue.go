package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func queueRequirements() []Requirement {
	return []Requirement{{
		Name:        "QueueServesInOrder",
		Explanation: "queued requests must be granted in the order in which the store saw them first",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         queueServesInOrder,
	}, {
		Name:        "QueueServesInOrderAfterExpiry",
		Explanation: "queued requests must be granted in order when a lease expires, too",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         queueAfterExpiry,
	}, {
		Name:        "QueueKeepsPlace",
		Explanation: "a repeated request must keep its first place, for WaiterTTL from the last repeat",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         queueKeepsPlace,
	}, {
		Name:        "QueuePlaceIsGivenUp",
		Explanation: "a place must be given up WaiterTTL after the last request for it",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         queueGivesUp,
	}, {
		Name:        "QueuePassesDeadWaiter",
		Explanation: "a waiter that is gone must delay the next by little more than its WaiterTTL",
		Invariant:   "I7",
		Needs:       canQueue,
		Run:         queuePassesDead,
	}, {
		Name:        "ReleaseLeavesQueue",
		Explanation: "Release must give up the lease ID's place, with Cancel for good",
		Invariant:   "I5",
		Needs:       canQueue,
		Run:         releaseLeavesQueue,
	}}
}

func canQueue(t *T) bool { return t.Engine.Capabilities().Queue }

// queue sends a request with a lease ID of its own that must be refused and
// get the given place.
func (t *T) queue(name string, place int, waiterTTL time.Duration) driver.AcquireRequest {
	t.Helper()
	req := ask(name, t.units(40))
	req.Queue, req.WaiterTTL = true, waiterTTL
	t.placed(req, place)
	return req
}

// placed repeats a queued request, which must be refused with the given
// place.
func (t *T) placed(req driver.AcquireRequest, place int) {
	t.Helper()
	if got := t.refuse(req).Place; got != place {
		t.Errorf("Place = %d, want %d", got, place)
	}
}

func queueServesInOrder(t *T) {
	l := t.take("a", t.units(40))
	first := t.queue("a", 1, t.units(40))
	second := t.queue("a", 2, t.units(40))
	third := t.queue("a", 3, t.units(40))
	if place := t.refused("a").Place; place != 0 {
		t.Errorf("a request that asked for no place has place %d", place)
	}
	t.mustRelease(l)
	t.refuse(third)
	t.refuse(second)
	next := t.grant(first)
	if left := t.live(next); left < t.units(30) {
		t.Errorf("the first of the queue got %s, want %s", left, first.TTL)
	}
	t.placed(third, 2)
	t.mustRelease(next)
	t.refuse(third)
	t.mustRelease(t.grant(second))
	t.grant(third)
}

func queueAfterExpiry(t *T) {
	t.take("a", t.units(2))
	first := t.queue("a", 1, t.units(40))
	second := t.queue("a", 2, t.units(40))
	time.Sleep(t.units(4))
	t.refuse(second)
	t.grant(first)
	t.placed(second, 1)
}

func queueKeepsPlace(t *T) {
	t.take("a", t.units(400))
	first := t.queue("a", 1, t.units(4))
	second := t.queue("a", 2, t.units(40))
	for range 3 {
		time.Sleep(t.units(2))
		t.placed(second, 2)
		t.placed(first, 1)
	}
}

func queueGivesUp(t *T) {
	t.take("a", t.units(400))
	first := t.queue("a", 1, t.units(2))
	second := t.queue("a", 2, t.units(40))
	time.Sleep(t.units(4))
	t.placed(second, 1)
	t.placed(first, 2)
}

func queuePassesDead(t *T) {
	l := t.take("a", t.units(400))
	t.queue("a", 1, t.units(2))
	second := t.queue("a", 2, t.units(40))
	t.mustRelease(l)
	t.eventually(second, t.units(6))
}

func releaseLeavesQueue(t *T) {
	t.take("a", t.units(400))
	first := t.queue("a", 1, t.units(40))
	second := t.queue("a", 2, t.units(40))
	third := t.queue("a", 3, t.units(40))
	if err := t.release(lease{AcquireRequest: first}); err != nil && !errors.Is(err, driver.ErrLost) {
		t.Errorf("Release of a place: %v", err)
	}
	t.placed(second, 1)
	t.callOff(second)
	t.placed(third, 1)
	t.mustBeCancelled(second)
	t.queue("a", 2, t.units(40))
}
