package enginetest

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func repeatRequirements() []Requirement {
	return []Requirement{
		{"RepeatIsGrantedAgain", "I6", nil, repeatIsGranted,
			"a repeated acquire of the live lease's own ID must be granted, with the token of the first time"},
		{"RepeatLengthens", "I6", nil, repeatLengthens,
			"a repeated acquire must make the lease last at least until its TTL from now"},
		{"RepeatNeverShortens", "I6", nil, repeatNeverShortens,
			"a repeated acquire must not shorten the lease, extended meanwhile or not"},
		{"RepeatComparesWholeID", "I1", nil, repeatComparesWholeID,
			"only the live lease's own ID, compared whole, makes an acquire a repeat"},
		{"RepeatAfterExpiryIsNewGrant", "I2", nil, repeatAfterExpiry,
			"once the lease has expired, its ID must be granted as any other: if free, with a greater token"},
		{"FirstLeavesLease", "I6", nil, firstLeavesLease,
			"a request that asks to be the first of its lease ID must be answered Repeated if that has a live lease, which does not change"},
		{"FirstLeavesPlace", "I6", canQueue, firstLeavesPlace,
			"a request that asks to be the first of its lease ID must be answered Repeated if that has a place, which does not change"},
		{"RepeatOutlivesCleanUp", "I5", nil, repeatOutlivesCleanUp,
			"what the engine still does after an acquire that failed must not end the lease that a repeat is granted"},
		{"RepeatElsewhereOutlivesCleanUp", "I5", hasJoin, repeatElsewhere,
			"what an engine still does after an acquire that failed must not end the lease that a repeat is granted at another engine"},
	}
}

// repeatOutlivesCleanUp repeats acquires whose context ended before the acquire was sent, or
// perhaps while it was under way.
func repeatOutlivesCleanUp(t *T) {
	var leases []lease
	for i, after := range []time.Duration{0, time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		req := ask(string(rune('a'+i)), t.units(40))
		_, _ = t.Engine.Acquire(ctx, req) // it may have come in time
		cancel()
		leases = append(leases, t.grant(req))
	}
	time.Sleep(t.Unit / 2)
	for _, l := range leases {
		t.live(l)
		t.mustRelease(l)
	}
}

// repeatElsewhere repeats acquires at another engine after their contexts ended at various times.
// On stores that take some milliseconds, the acquires were then under way. If a lease ID is spent,
// it uses a new one, like a client.
func repeatElsewhere(t *T) {
	other := t.join()
	var leases []lease
	for i, after := range []time.Duration{0, 1, 2, 3, 5, 8} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		req := ask(string(rune('a'+i)), t.units(40))
		_, _ = t.Engine.Acquire(ctx, req) // it may have come in time
		cancel()
		sent := time.Now()
		reply := other.acquire(req)
		if reply.Outcome == driver.Spent {
			other.mustCancel(req)
			req.LeaseID = lockinfo.NewLeaseID()
			sent, reply = time.Now(), other.acquire(req)
		}
		t.need(reply.Outcome == driver.Granted, "Acquire(%q) at another engine: %s, want a grant", req.Name, outcome(reply))
		leases = append(leases, lease{AcquireRequest: req, token: reply.Token, sent: sent, answered: time.Now()})
	}
	time.Sleep(t.Unit / 2)
	for i, l := range leases {
		t.live(l)
		t.refused(l.Name)
		[]*T{t, other}[i%2].mustRelease(l)
	}
}

func repeatIsGranted(t *T) {
	l := t.take("a", t.units(8))
	for range 2 {
		t.grantedAgain(l.AcquireRequest, l)
	}
	t.mustExtend(l, t.units(16))
	t.grantedAgain(l.AcquireRequest, l)
	t.counts("a", 1, l)
}

func repeatLengthens(t *T) {
	l := t.take("a", t.units(8))
	l.TTL = t.units(40)
	t.atLeast("the lease, after a repeat,", t.live(t.grant(l.AcquireRequest)), t.units(30))
}

func repeatNeverShortens(t *T) {
	l := t.take("a", t.units(40))
	l.TTL = t.units(2)
	t.atLeast("the lease, after a repeat with less,", t.live(t.grant(l.AcquireRequest)), t.units(30))
	t.mustExtend(l, t.units(400))
	t.atLeast("an extended lease, after a repeat with less,", t.live(t.grant(l.AcquireRequest)), t.units(300))
}

func repeatComparesWholeID(t *T) {
	l := t.take("a", t.units(40))
	for _, other := range near(l) {
		t.refuse(other.AcquireRequest)
	}
}

func repeatAfterExpiry(t *T) {
	l := t.take("a", t.units(1))
	time.Sleep(t.units(2))
	again := t.eventually(l.AcquireRequest, t.units(2))
	t.above(l.token, again)
	t.live(again)
}

// repeated sends a request with First that is not the first of its lease ID.
func (t *T) repeated(req driver.AcquireRequest) {
	t.Helper()
	req.First = true
	reply := t.acquire(req)
	t.want(reply.Outcome == driver.Repeated && reply.Token == 0, "Acquire(%q), to be the first: %s, want repeated", req.Name, outcome(reply))
}

func firstLeavesLease(t *T) {
	req := ask("a", t.units(8))
	req.First = true
	l := t.grant(req)
	again := req
	again.TTL = t.units(40)
	t.repeated(again)
	t.atMost("the lease, after a request that was not the first,", t.live(l), t.units(8))
	other := ask("a", t.units(40))
	other.First = true
	t.refuse(other)
	again.First = false
	t.grantedAgain(again, l)
}

func firstLeavesPlace(t *T) {
	l := t.take("a", t.units(40))
	req := forPlace(ask("a", t.units(40)), t.units(8))
	req.First = true
	t.placed(req, 1)
	second := t.queue("a", 2)
	again := req
	again.WaiterTTL = t.units(40)
	t.repeated(again)
	again.Queue, again.WaiterTTL = false, 0
	t.repeated(again)
	t.waiting("a", req, second)
	t.atMost("the place, after a request that was not the first,", t.inspect("a").Queue[0].ExpiresIn, t.units(8))
	t.mustRelease(l)
	t.repeated(req) // req was handed the lock
	t.handed(req)
}
