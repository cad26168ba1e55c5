package enginetest

import (
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// canQueue reports whether the engine has a queue.
func canQueue(t *T) bool { return t.Features.Queuer != nil }

// both returns a condition that is true if all given conditions are.
func both(needs ...func(*T) bool) func(*T) bool {
	return func(t *T) bool {
		return !slices.ContainsFunc(needs, func(need func(*T) bool) bool { return !need(t) })
	}
}

// forPlace returns req with Queue, which requests a place.
func forPlace(req driver.AcquireRequest, waiterTTL time.Duration) driver.AcquireRequest {
	req.Queue, req.WaiterTTL = true, waiterTTL
	return req
}

// queue sends an exclusive request with a new lease ID. It must be refused and get the given place,
// for a long time.
func (t *T) queue(name string, place int) driver.AcquireRequest {
	t.Helper()
	return t.queueFor(name, place, t.units(40))
}

// queueFor is queue with another waiter TTL.
func (t *T) queueFor(name string, place int, waiterTTL time.Duration) driver.AcquireRequest {
	t.Helper()
	return t.placed(forPlace(ask(name, t.units(40)), waiterTTL), place)
}

// queueShared is queue for a shared request.
func (t *T) queueShared(name string, place int) driver.AcquireRequest {
	t.Helper()
	return t.placed(forPlace(askShared(name, t.units(40)), t.units(40)), place)
}

// placed sends a request for a place, which must be refused and get the given place. It returns the
// request.
func (t *T) placed(req driver.AcquireRequest, place int) driver.AcquireRequest {
	t.Helper()
	got := t.refuse(req).Place
	t.want(got == place, "Place = %d, want %d", got, place)
	return req
}

// refresh refreshes one place or lease for waiterTTL.
func (t *T) refresh(req driver.AcquireRequest, waiterTTL time.Duration) driver.RefreshReply {
	t.Helper()
	return t.refreshes([]driver.RefreshRequest{{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: waiterTTL}})[0]
}

// refreshes calls Refresh once, and returns one reply per request.
func (t *T) refreshes(reqs []driver.RefreshRequest) []driver.RefreshReply {
	t.Helper()
	replies := t.Features.Queuer.Refresh(t.Context(), reqs)
	t.need(len(replies) == len(reqs), "Refresh: %d answers to %d requests", len(replies), len(reqs))
	return replies
}

// waits refreshes a place, whose number must be place.
func (t *T) waits(req driver.AcquireRequest, place int) driver.Blocker {
	t.Helper()
	reply := t.refresh(req, req.WaiterTTL)
	t.must("Refresh", req.Name, reply.Err)
	t.need(reply.Outcome == driver.Held && reply.Place == place,
		"Refresh(%q): %s, place %d; want held, place %d", req.Name, outcome(reply.AcquireReply), reply.Place, place)
	return reply.Blocker
}

// waiting fails the run unless the queue of name consists of exactly reqs. It sends no request for
// which an engine must notice an expiry.
func (t *T) waiting(name string, reqs ...driver.AcquireRequest) {
	t.Helper()
	lock := t.inspect(name)
	var got, want []lockinfo.LeaseID
	for _, w := range lock.Queue {
		got = append(got, w.LeaseID)
	}
	for _, req := range reqs {
		want = append(want, req.LeaseID)
	}
	t.need(slices.Equal(got, want) && lock.QueueLength == len(want), "queue of %q = %v, length %d; want %v", name, got, lock.QueueLength, want)
}

// handed fails the run unless req, which had a place, was handed the lock, and returns the lease.
// It sends no request for which an engine must notice an expiry.
func (t *T) handed(req driver.AcquireRequest) lease {
	t.Helper()
	l := lease{AcquireRequest: req}
	h, ok := t.holding(l)
	t.need(ok, "%q was not handed over to the waiter whose turn it is", req.Name)
	l.token = h.Token
	return l
}

// eventuallyHanded refreshes a place until the outcome is Granted. It ends the run if that takes
// longer than limit.
func (t *T) eventuallyHanded(req driver.AcquireRequest, limit time.Duration) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(t.Unit / 10) {
		reply := t.refresh(req, req.WaiterTTL)
		t.must("Refresh", req.Name, reply.Err)
		if reply.Outcome == driver.Granted {
			return
		}
		t.need(time.Since(start) <= limit, "Refresh(%q): not granted for %s", req.Name, limit)
	}
}
