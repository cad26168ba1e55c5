package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func refreshRequirements() []Requirement {
	return []Requirement{
		{"RefreshRenewsPlace", "I7", canQueue, refreshRenews,
			"Refresh must make the place last at least until WaiterTTL from now"},
		{"RefreshNeverShortens", "I6", canQueue, refreshNeverShortens,
			"Refresh must not shorten a place or a lease"},
		{"RefreshNeverCreates", "I4", canQueue, refreshNeverCreates,
			"Refresh must answer ErrLost and create nothing if the lease ID has neither place nor live lease"},
		{"QueueComparesWholeID", "I4", canQueue, queueComparesWholeID,
			"whatever keeps, renews or gives up a place must compare the lease ID whole"},
		{"RefreshAnswersEachInOrder", "", canQueue, refreshAnswersEach,
			"Refresh must answer each request, in their order, and a lost place must not spoil the others"},
		{"RefreshSaysWhoAndHowLong", "", canQueue, refreshSaysWho,
			"Refresh of a place must say who holds the lock and for how long, but not with which token"},
		{"RefreshGivesUpPlace", "I5", both(canQueue, canShare), refreshGivesUp,
			"Refresh with a WaiterTTL of 0 must give the place up, and hand the lock to those who waited for that"},
		{"RefreshGivesUpNoLease", "I6", canQueue, refreshGivesUpNoLease,
			"Refresh with a WaiterTTL of 0 must report a lease that was handed over, and not change it"},
		{"RefreshTakesMaxBatch", "", canQueue, refreshTakesMaxBatch,
			"Refresh must take MaxBatch requests in one call, and a queue must have room for as many"},
	}
}

func refreshRenews(t *T) {
	t.take("a", t.units(400))
	first := t.queueFor("a", 1, t.units(3))
	second := t.queue("a", 2)
	time.Sleep(t.units(2))
	t.waits(first, 1)
	time.Sleep(t.units(2))
	t.waits(second, 2)
	t.waits(first, 1)
}

func refreshNeverShortens(t *T) {
	l := t.take("a", t.units(40))
	first := t.queue("a", 1)
	first.WaiterTTL = t.units(2)
	t.waits(first, 1)
	queue := t.inspect("a").Queue
	t.want(len(queue) == 1 && queue[0].ExpiresIn >= t.units(30), "queue %+v after Refresh with %s, want a place for %s", queue, t.units(2), t.units(40))
	t.refresh(l.AcquireRequest, t.units(2))
	t.atLeast("a lease, after Refresh with less,", t.live(l), t.units(30))
}

func refreshNeverCreates(t *T) {
	released := t.take("free", t.units(40))
	t.mustRelease(released)
	t.take("a", t.units(40))
	left := t.queue("a", 1)
	t.mustCancel(left)
	expired := t.queueFor("a", 1, t.units(1))
	time.Sleep(t.units(2))
	for what, req := range map[string]driver.AcquireRequest{
		"a lease that was released":     released.AcquireRequest,
		"a name that was never used":    ask("never", 0),
		"a lease ID that never asked":   ask("a", 0),
		"a place that was given up":     left,
		"a place that was not renewed":  expired,
		"a place of another free name":  {Name: "free", LeaseID: expired.LeaseID},
		"a lease ID of a released name": {Name: "free", LeaseID: lockinfo.NewLeaseID()},
	} {
		t.lost("Refresh of "+what, t.refresh(req, t.units(40)).Err)
	}
	t.waiting("a")
	t.free("free")
	t.free("never")
	t.take("free", t.units(8))
}

func queueComparesWholeID(t *T) {
	l := t.take("a", t.units(8))
	req := t.queue("a", 1)
	for _, of := range []lockinfo.LeaseID{l.LeaseID, req.LeaseID} {
		for _, id := range nearMisses(of) {
			near := driver.AcquireRequest{Name: "a", LeaseID: id}
			t.lost("Refresh with another digit in the lease ID", t.refresh(near, t.units(40)).Err)
		}
	}
	t.atMost("the lease, after Refresh with another digit in its ID,", t.live(l), t.units(8))
	for i, other := range near(lease{AcquireRequest: req}) {
		t.lost("Release with another digit in the lease ID", t.release(other))
		t.placed(other.AcquireRequest, i+2)
	}
	t.placed(req, 1)
}

func refreshAnswersEach(t *T) {
	t.take("a", t.units(400))
	first, second := t.queue("a", 1), t.queue("a", 2)
	handed := t.take("b", t.units(400))
	third := t.queue("b", 1)
	t.mustRelease(handed)
	l := t.handed(third)
	unknown := ask("a", 0)
	swapped := third
	swapped.Name = "a"

	var reqs []driver.RefreshRequest
	for _, req := range []driver.AcquireRequest{unknown, second, third, swapped, first, second} {
		reqs = append(reqs, driver.RefreshRequest{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: t.units(400)})
	}
	replies := t.refreshes(reqs)
	for i, want := range []struct {
		lost  bool
		place int
		token uint64
	}{{lost: true}, {place: 2}, {token: l.token}, {lost: true}, {place: 1}, {place: 2}} {
		got := replies[i]
		t.want(isLost(got.Err, want.lost) && got.Place == want.place && got.Token == want.token && (got.Outcome == driver.Granted) == (want.token != 0),
			"answer %d: %s, place %d, token %d, error %v; want %+v", i, outcome(got.AcquireReply), got.Place, got.Token, got.Err, want)
	}
	for _, w := range t.inspect("a").Queue {
		t.want(w.ExpiresIn >= t.units(300), "a place lasts for another %s, want %s", w.ExpiresIn, t.units(400))
	}
	t.live(l)
}

func refreshSaysWho(t *T) {
	l := t.grant(t.askWhole("a", t.units(8)))
	waiter := t.queue("a", 1)
	t.lasts("Refresh", t.units(8), l, func() time.Duration { return t.waits(waiter, 1).ExpiresIn })
	reply := t.refresh(waiter, waiter.WaiterTTL)
	t.sameHolder("Refresh", reply.Holder, l.Holder)
	t.want(reply.Token == 0, "Token = %d in the answer to a waiter", reply.Token)
}

func refreshTakesMaxBatch(t *T) {
	t.take("a", t.units(400))
	var reqs []driver.RefreshRequest
	for i := range driver.MaxBatch {
		req := t.queue("a", i+1)
		reqs = append(reqs, driver.RefreshRequest{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: t.units(400)})
	}
	for i, reply := range t.refreshes(reqs) {
		t.want(reply.Err == nil && reply.Place == i+1, "answer %d: place %d, error %v; want place %d", i, reply.Place, reply.Err, i+1)
	}
}

// givesUp gives a place up, like a waiter whose wait ends without the lock.
func (t *T) givesUp(req driver.AcquireRequest) {
	t.Helper()
	reply := t.refresh(req, 0)
	t.need(reply.Err == nil && reply.Outcome == driver.Held && reply.Place == 0,
		"Refresh(%q) for nothing: %s, place %d, error %v; want held, without a place",
		req.Name, outcome(reply.AcquireReply), reply.Place, reply.Err)
}

func refreshGivesUp(t *T) {
	t.grant(askShared("a", t.units(40)))
	writer, second := t.queue("a", 1), t.queueShared("a", 2)
	t.givesUp(writer)
	t.handed(second)
	t.waiting("a")
	t.lost("Refresh of a place that was given up", t.refresh(writer, 0).Err)
	t.lost("Refresh of a place that was given up", t.refresh(writer, writer.WaiterTTL).Err)
	t.placed(writer, 1) // the lease ID was not cancelled
}

func refreshGivesUpNoLease(t *T) {
	l := t.take("a", t.units(40))
	first, second := t.queue("a", 1), t.queue("a", 2)
	t.mustRelease(l)
	t.tellsHandedOver(t.refresh(first, 0), t.handed(first))
	t.waiting("a", second)
}
