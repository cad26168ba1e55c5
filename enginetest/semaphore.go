package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func semaphoreRequirements() []Requirement {
	return []Requirement{
		{"SemaphoreGrantsLimit", "I1", canCount, semaphoreGrantsLimit,
			"the live leases of a semaphore must have at most the limit of permits together"},
		{"SemaphoreGrantsLimitUnderContention", "I1", canCount, semaphoreContention,
			"of many semaphore requests at once, those must be granted for which there are permits"},
		{"SemaphoreCountsPermits", "I1", canCount, semaphoreCountsPermits,
			"a request must take as many permits as it says, and give all of them back"},
		{"SemaphorePermitsComeBackOneByOne", "I1", canCount, semaphorePermitsComeBack,
			"permits of a holder that expired must come back, and no others"},
		{"SemaphoreChecksKind", "I12", canCount, semaphoreChecksKind,
			"a name with live leases must refuse requests of another kind with ErrKindMismatch, and change nothing"},
		{"SemaphoreChecksKindOfQueue", "I12", both(canCount, canQueue), semaphoreChecksKindOfQueue,
			"a name whose lease expired, but that has places, must refuse another kind with ErrKindMismatch"},
		{"SemaphoreLimitMayChangeWhenUnused", "I12", canCount, semaphoreLimitMayChange,
			"a name without live leases and places must take any kind, whatever it was used for"},
		{"SemaphoreServesInOrder", "I7", both(canCount, canQueue), semaphoreServesInOrder,
			"permits that come back must go to the first of the queue, then to the next, as far as they reach"},
		{"SemaphoreServesLargeRequest", "I7", both(canCount, canQueue), semaphoreServesLarge,
			"a large request in the queue must not be overtaken by small ones, queued or not"},
	}
}

func canCount(t *T) bool { return t.Engine.Capabilities().Semaphore }

// askPermits returns a request for some of limit permits.
func askPermits(name string, permits, limit int, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Mode = lockinfo.Permits(permits, limit)
	return req
}

// queuePermits is queue for a request for some of limit permits.
func (t *T) queuePermits(name string, place, permits, limit int) driver.AcquireRequest {
	t.Helper()
	return t.placed(forPlace(askPermits(name, permits, limit, t.units(40)), t.units(40)), place)
}

func semaphoreGrantsLimit(t *T) {
	first := t.grant(askPermits("a", 1, 3, t.units(40)))
	second := t.grant(askPermits("a", 1, 3, t.units(40)))
	third := t.grant(askPermits("a", 1, 3, t.units(40)))
	t.above(t.above(first.token, second), third)
	t.refuse(askPermits("a", 1, 3, t.units(1)))
	t.grantedAgain(second.AcquireRequest, second)
	t.mustRelease(second)
	t.lost("Extend of the released one of three leases", t.extend(second, t.units(80)))
	t.grant(askPermits("a", 1, 3, t.units(40)))
	t.refuse(askPermits("a", 1, 3, t.units(1)))
	t.live(first)
	t.live(third)
}

func semaphoreContention(t *T) {
	reqs := make([]driver.AcquireRequest, 16)
	for i := range reqs {
		reqs[i] = askPermits("a", 2, 7, t.units(40))
	}
	n := count(t.acquireAtOnce(reqs, t), driver.Granted)
	t.want(n == 3, "%d of 16 attempts at once at 2 of 7 permits were granted, want 3", n)
}

func semaphoreCountsPermits(t *T) {
	two := t.grant(askPermits("a", 2, 5, t.units(40)))
	t.refuse(askPermits("a", 4, 5, t.units(40)))
	three := t.grant(askPermits("a", 3, 5, t.units(40)))
	t.refuse(askPermits("a", 1, 5, t.units(40)))
	lock := t.inspect("a")
	t.want(len(lock.Holders) == 2 && lock.Holders[0].Mode == two.Mode && lock.Holders[1].Mode == three.Mode && lock.Mode == lockinfo.Permits(5, 5),
		"mode %s, holders %+v, want 5 of 5 permits, and holders of 2 and 3", lock.Mode, lock.Holders)
	t.mustRelease(two)
	t.refuse(askPermits("a", 3, 5, t.units(40)))
	t.mustRelease(three)
	t.mustRelease(t.grant(askPermits("a", 5, 5, t.units(40))))
	t.grant(askPermits("large", lockinfo.MaxLimit-1, lockinfo.MaxLimit, t.units(40)))
	t.refuse(askPermits("large", 2, lockinfo.MaxLimit, t.units(40)))
	t.grant(askPermits("large", 1, lockinfo.MaxLimit, t.units(40)))
}

func semaphorePermitsComeBack(t *T) {
	dead := t.grant(askPermits("a", 2, 4, t.units(1)))
	long := t.grant(askPermits("a", 2, 4, t.units(40)))
	queued := canQueue(t)
	var first, second driver.AcquireRequest
	if queued {
		t.grant(askPermits("b", 1, 2, t.units(1)))
		t.grant(askPermits("b", 1, 2, t.units(40)))
		first, second = t.queuePermits("b", 1, 1, 2), t.queuePermits("b", 2, 1, 2)
	}
	time.Sleep(t.units(2))
	t.lost("Extend of the expired one of two leases", t.extend(dead, t.units(8)))
	t.refuse(askPermits("a", 3, 4, t.units(8)))
	t.grant(askPermits("a", 2, 4, t.units(40)))
	t.refuse(askPermits("a", 1, 4, t.units(8)))
	t.atLeast("the lease beside one that expired", t.live(long), t.units(30))
	if queued {
		t.waits(second, 1)
		t.handed(first)
		t.waiting("b", second)
	}
}

// mismatched fails the run unless req is refused with ErrKindMismatch.
func (t *T) mismatched(what string, req driver.AcquireRequest) {
	t.Helper()
	t.acquireFails(what, req, driver.ErrKindMismatch)
}

func semaphoreChecksKind(t *T) {
	l := t.grant(askPermits("a", 1, 3, t.units(40)))
	t.mismatched("a greater limit", askPermits("a", 1, 4, t.units(8)))
	t.mismatched("a smaller limit", askPermits("a", 1, 2, t.units(8)))
	t.mismatched("an exclusive request to a semaphore", ask("a", t.units(8)))
	t.take("b", t.units(40))
	t.mismatched("a semaphore request to an exclusive lock", askPermits("b", 1, 3, t.units(8)))
	if canShare(t) {
		t.mismatched("a shared request to a semaphore", askShared("a", t.units(8)))
		t.grant(askShared("c", t.units(40)))
		t.mismatched("a semaphore request to a shared lock", askPermits("c", 1, 3, t.units(8)))
	}
	if canQueue(t) {
		t.mismatched("a request for a place behind another kind", forPlace(ask("a", t.units(8)), t.units(40)))
		t.waiting("a")
	}
	t.live(l)
	t.grant(askPermits("a", 1, 3, t.units(40)))
}

func semaphoreChecksKindOfQueue(t *T) {
	t.take("a", t.units(1))
	waiter := t.queue("a", 1)
	t.grant(askPermits("b", 2, 2, t.units(1)))
	counting := t.queuePermits("b", 1, 2, 2)
	time.Sleep(t.units(2))
	permit := forPlace(askPermits("a", 1, 2, t.units(8)), t.units(8))
	t.mismatched("a semaphore request to a name with an exclusive waiter", permit)
	t.mismatched("another limit to a name with a waiter", askPermits("b", 1, 3, t.units(8)))
	t.grant(waiter)
	t.grant(counting)
}

func semaphoreLimitMayChange(t *T) {
	t.mustRelease(t.grant(askPermits("a", 1, 3, t.units(40))))
	t.mustRelease(t.grant(askPermits("a", 2, 2, t.units(40))))
	t.mustRelease(t.take("a", t.units(40)))
	t.mustRelease(t.grant(askPermits("a", 4, 4, t.units(40))))
	if canShare(t) {
		t.mustRelease(t.grant(askShared("a", t.units(40))))
	}
	if canQueue(t) {
		l := t.take("a", t.units(40))
		t.mustCancel(t.queue("a", 1))
		t.mustRelease(l)
	}
	t.grant(askPermits("a", 5, 5, t.units(40)))
}

func semaphoreServesInOrder(t *T) {
	holder := t.grant(askPermits("a", 4, 4, t.units(400)))
	var reqs []driver.AcquireRequest
	for i, permits := range []int{1, 2, 2, 1} {
		reqs = append(reqs, t.queuePermits("a", i+1, permits, 4))
	}
	t.mustRelease(holder)
	first, second := t.handed(reqs[0]), t.handed(reqs[1])
	t.waiting("a", reqs[2], reqs[3])
	t.mustRelease(first)
	t.handed(reqs[2])
	t.waiting("a", reqs[3])
	t.mustRelease(second)
	t.handed(reqs[3])
	t.waiting("a")
}

func semaphoreServesLarge(t *T) {
	first := t.grant(askPermits("a", 1, 3, t.units(400)))
	second := t.grant(askPermits("a", 1, 3, t.units(400)))
	large := t.queuePermits("a", 1, 3, 3)
	t.refuse(askPermits("a", 1, 3, t.units(8)))
	small := t.queuePermits("a", 2, 1, 3)
	t.mustRelease(first)
	t.placed(small, 2)
	t.waiting("a", large, small)
	t.mustRelease(second)
	l := t.handed(large)
	t.waiting("a", small)
	t.mustRelease(l)
	t.handed(small)
}
