package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func handOverRequirements() []Requirement {
	return []Requirement{
		{"HandsOverAtRelease", "I7", canQueue, handsOverAtRelease,
			"Release must grant the lock to the first of the queue in the same step, who learns it from any request"},
		{"HandsOverAtCancel", "I7", canQueue, handsOverAtCancel,
			"a release with Cancel must grant the lock to the first of the queue in the same step"},
		{"HandsOverAtExpiry", "I7", canQueue, handsOverAtExpiry,
			"the next Acquire or Refresh after an expiry must grant the lock to the first of the queue, not to its sender"},
		{"HandsOverWhenPlaceEnds", "I7", both(canQueue, canShare), handsOverWhenPlaceEnds,
			"when a place ends, by expiry or release, those behind it must be granted what the live leases allow"},
		{"HandsOverToSharedTogether", "I7", both(canQueue, canShare), handsOverToShared,
			"consecutive shared requests must be granted together, and none behind the next exclusive one"},
		{"HandedOverLeaseEndsWithPlace", "I7", canQueue, handedOverEndsWithPlace,
			"a lease that was handed over must end when the place would have ended, until it is lengthened"},
		{"HandedOverLeaseIsLengthened", "I6", canQueue, handedOverLengthened,
			"Extend and a repeated acquire must each lengthen a lease that was handed over, and Refresh never shorten it"},
		{"RefreshLeavesHandedOverLease", "I7", canQueue, refreshLeavesHandedOver,
			"Refresh must not lengthen a lease that was handed over, so that one that nobody hears of ends with its place"},
		{"TokensGrowOverHandOver", "I2", canQueue, tokensGrowOverHandOver,
			"a lease that is handed over must carry a token above every earlier one and above its place's MinToken"},
	}
}

func handsOverAtRelease(t *T) {
	holder := t.take("a", t.units(40))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	t.mustRelease(holder)
	t.waiting("a", second)
	next := t.handed(first)
	t.above(holder.token, next)
	t.tellsHandedOver(t.refresh(first, t.units(40)), next)
	t.grantedAgain(first, next)
	t.counts("a", 1, next)
	t.lost("Release by the earlier holder", t.release(holder))
	t.live(next)
}

// tellsHandedOver fails the run unless the reply contains the hand-over of l.
func (t *T) tellsHandedOver(reply driver.RefreshReply, l lease) {
	t.Helper()
	t.want(reply.Err == nil && reply.Outcome == driver.Granted && reply.Token == l.token,
		"Refresh after the hand-over: %s, token %d, error %v; want granted, token %d", outcome(reply.AcquireReply), reply.Token, reply.Err, l.token)
}

func handsOverAtCancel(t *T) {
	holder := t.take("a", t.units(40))
	first := t.queue("a", 1)
	second := t.queue("a", 2)
	t.mustCancel(holder.AcquireRequest)
	t.handed(first)
	t.mustCancel(first)
	t.handed(second)
}

// handsOverAtExpiry lets leases of several names expire at the same time. With the last lease the
// first place expires, too.
func handsOverAtExpiry(t *T) {
	var first, second []driver.AcquireRequest
	for i, waiterTTL := range []int{40, 40, 4, 1} {
		name := string(rune('a' + i))
		t.take(name, t.units(1))
		first = append(first, t.queueFor(name, 1, t.units(waiterTTL)))
		second = append(second, t.queue(name, 2))
	}
	time.Sleep(t.units(2))
	t.refused("a")
	t.handed(first[0])
	t.waiting("a", second[0])
	t.waits(second[1], 1)
	t.handed(first[1])
	t.atLeast("the lease of the first of the queue, who asked again,", t.live(t.grant(first[2])), t.units(30))
	t.refused("d")
	t.handed(second[3])
}

func handsOverWhenPlaceEnds(t *T) {
	readers := map[string]driver.AcquireRequest{}
	for _, name := range []string{"expires", "is released"} {
		t.grant(askShared(name, t.units(400)))
		writer := t.queueFor(name, 1, t.units(1))
		readers[name] = t.queueShared(name, 2)
		if name == "is released" {
			t.mustCancel(writer)
			t.handed(readers[name])
		}
	}
	time.Sleep(t.units(2))
	t.refused("expires")
	t.handed(readers["expires"])
}

func handsOverToShared(t *T) {
	holder := t.take("a", t.units(40))
	readers := []driver.AcquireRequest{t.queueShared("a", 1), t.queueShared("a", 2)}
	writer, last := t.queue("a", 3), t.queueShared("a", 4)
	t.mustRelease(holder)
	first, second := t.handed(readers[0]), t.handed(readers[1])
	t.want(first.token != second.token, "two readers were granted together with the same token")
	t.waiting("a", writer, last)
	t.mustRelease(second)
	t.waiting("a", writer, last)
	t.mustRelease(first)
	t.mustRelease(t.handed(writer))
	t.handed(last)
}

func handedOverEndsWithPlace(t *T) {
	holder := t.take("a", t.units(400))
	waiter := forPlace(ask("a", t.units(400)), t.units(4))
	sent := time.Now()
	t.placed(waiter, 1)
	answered := time.Now()
	time.Sleep(t.units(1))
	t.mustRelease(holder)
	l := t.handed(waiter)
	l.sent, l.answered = sent, answered
	t.lasts("a lease that was handed over", t.units(4), l, func() time.Duration { return t.live(l) })
}

// refreshLeavesHandedOver hands the lock to a waiter that receives no notice, and continues to
// refresh its place.
func refreshLeavesHandedOver(t *T) {
	holder := t.take("a", t.units(400))
	deaf := t.queueFor("a", 1, t.units(1))
	next := t.queue("a", 2)
	t.mustRelease(holder)
	l := t.handed(deaf)
	t.atMost("a lease that was handed over", t.live(l), t.units(1))
	t.refresh(deaf, t.units(40))
	t.atMost("a lease that was handed over, after Refresh,", t.live(l), t.units(1))
	time.Sleep(t.units(1) / 2)
	t.refresh(deaf, t.units(40))
	time.Sleep(t.units(1))
	t.refresh(deaf, t.units(40))
	t.handed(next)
}

func handedOverLengthened(t *T) {
	for what, lengthen := range map[string]func(lease){
		"Extend":           func(l lease) { t.mustExtend(l, t.units(40)) },
		"repeated Acquire": func(l lease) { t.grant(l.AcquireRequest) },
	} {
		holder := t.take(what, t.units(400))
		waiter := t.queueFor(what, 1, t.units(4))
		t.mustRelease(holder)
		l := t.handed(waiter)
		lengthen(l)
		t.refresh(waiter, t.units(2))
		t.atLeast("a lease, after "+what+",", t.live(l), t.units(30))
		t.atMost("a lease, after "+what+",", t.live(l), t.units(40))
		h := t.handed(waiter)
		t.want(h.token == l.token, "token after %s = %d, want %d", what, h.token, l.token)
	}
}

func tokensGrowOverHandOver(t *T) {
	holder := t.takeAhead("a", t.units(40))
	first := t.queue("a", 1)
	lifted := forPlace(ask("a", t.units(40)), t.units(40))
	lifted.MinToken = holder.token + uint64((driver.MaxTokenLead / 4).Microseconds())
	t.placed(lifted, 2)
	third := t.queue("a", 3)
	last := holder.token
	for _, next := range []driver.AcquireRequest{first, lifted, third} {
		t.mustRelease(holder)
		holder = t.handed(next)
		t.above(next.MinToken, holder)
		last = t.above(last, holder)
	}
}
