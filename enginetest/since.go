package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func sinceRequirements() []Requirement {
	return []Requirement{
		{"SinceCountsFromGrant", "", nil, sinceCounts,
			"Inspect and refusals must say how long ago the store granted the lease, in every mode"},
		{"SinceIsNotTheTokens", "", nil, sinceIsNotTheTokens,
			"since when a lease is held must not be read from its token, which may be ahead of the store's clock"},
		{"SinceKeptByExtend", "", nil, func(t *T) { t.sinceKept(t.extendAll) },
			"Extend must not change since when a lease is held"},
		{"SinceKeptByRepeat", "I6", nil, func(t *T) { t.sinceKept(t.repeatAll) },
			"a repeated Acquire must not change since when a lease is held"},
		{"SinceKeptByDowngrade", "", canShare, sinceKeptByDowngrade,
			"Downgrade must not change since when a lease is held"},
		{"SinceBeginsWithHandOver", "", canQueue, sinceOfHandOver,
			"a lease that is handed over must be held since then, not since its place or the lease before"},
		{"RefusalSaysReleased", "", nil, refusalSaysReleased,
			"a refusal must say whether what is in the way was released, and that must not change since when"},
		{"RefusalSaysQueue", "", canQueue, refusalSaysQueue,
			"a refusal, and Refresh, must say how many are queued in all"},
	}
}

// ageing returns how long a requirement waits before it checks since when a lease is held.
func (t *T) ageing() time.Duration { return t.Unit / 4 }

// inAllModes grants a lease in each mode that the engine has.
func (t *T) inAllModes() []lease {
	t.Helper()
	all := []lease{t.take("exclusive", t.units(8))}
	if canShare(t) {
		all = append(all, t.grant(askShared("shared", t.units(8))))
	}
	if canCount(t) {
		all = append(all, t.grant(askPermits("permits", 2, 3, t.units(8))))
	}
	return all
}

// rival returns a request that cannot be granted while l's lease is live.
func rival(l lease) driver.AcquireRequest {
	if limit := l.Mode.Limit(); limit != 0 {
		return askPermits(l.Name, limit, limit, l.TTL)
	}
	return ask(l.Name, l.TTL)
}

// since fails the run unless Inspect and a refusal report that l's lease has been held since its
// grant.
func (t *T) since(l lease) {
	t.Helper()
	asked := time.Now()
	t.heldSince("Inspect", t.mustHold(l).Since, l, asked)
	t.heldSince("a refusal", t.refuse(rival(l)).Since, l, asked)
}

// heldSince fails the run unless since is how long l's lease has been held. It comes from the reply
// to a request that was sent at asked.
func (t *T) heldSince(what string, since time.Duration, l lease, asked time.Time) {
	t.Helper()
	least, most := asked.Sub(l.answered)-early, time.Since(l.sent)+early
	t.want(since >= least && since <= most, "%s: %s says that it is held for %s, want %s to %s", l.Name, what, since, least, most)
}

func sinceCounts(t *T) {
	all := t.inAllModes()
	if canAcquireAll(t) {
		sent := time.Now()
		for _, l := range t.acquiredAll(askTagged(t.units(8), "x", "y")) {
			l.sent, l.answered = sent, time.Now()
			all = append(all, l)
		}
	}
	time.Sleep(t.ageing())
	for _, l := range all {
		t.since(l)
	}
}

func sinceIsNotTheTokens(t *T) {
	l := t.takeAhead("a", t.units(8))
	time.Sleep(t.ageing())
	t.since(l)
}

// sinceKept fails the run if act changes since when leases are held.
func (t *T) sinceKept(act func([]lease)) {
	t.Helper()
	all := t.inAllModes()
	time.Sleep(t.ageing())
	act(all)
	for _, l := range all {
		t.since(l)
	}
}

func (t *T) extendAll(all []lease) {
	for _, l := range all {
		t.mustExtend(l, t.units(40))
	}
}

func (t *T) repeatAll(all []lease) {
	for _, l := range all {
		l.TTL = t.units(40)
		t.grant(l.AcquireRequest)
	}
}

func sinceKeptByDowngrade(t *T) {
	l := t.take("a", t.units(8))
	time.Sleep(t.ageing())
	t.mustDowngrade(l)
	t.since(l)
}

func sinceOfHandOver(t *T) {
	var holders []lease
	var waiters []driver.AcquireRequest
	for _, name := range []string{"a", "b"} {
		holders = append(holders, t.take(name, t.units(40)))
		waiter := forPlace(ask(name, t.units(40)), t.units(40))
		if name == "b" && canShare(t) {
			waiter.Mode = lockinfo.Shared
		}
		t.placed(waiter, 1)
		waiters = append(waiters, waiter)
	}
	time.Sleep(t.ageing())
	var heirs []lease
	for i, l := range holders {
		sent := time.Now()
		t.mustRelease(l)
		heir := t.handed(waiters[i])
		heir.sent, heir.answered = sent, time.Now()
		heirs = append(heirs, heir)
	}
	for _, heir := range heirs {
		t.since(heir)
	}
	time.Sleep(t.ageing())
	for _, heir := range heirs {
		t.since(heir)
	}
}

func refusalSaysReleased(t *T) {
	all := t.inAllModes()
	time.Sleep(t.ageing())
	for _, l := range all {
		way := t.refuse(rival(l))
		t.want(!way.Released, "%s: a live lease is said to be released", l.Name)
		asked := time.Now()
		t.mustKeep(l, t.units(8))
		way = t.refuse(rival(l))
		t.heldSince("a refusal because of KeepFor", way.Since, l, asked)
		t.want(way.Released, "%s: what is kept closed is not said to be released", l.Name)
	}
}

func refusalSaysQueue(t *T) {
	t.take("a", t.units(40))
	t.saysQueue(t.refused("a"), 0)
	var waiters []driver.AcquireRequest
	for i := range 3 {
		req := forPlace(ask("a", t.units(40)), t.units(40))
		t.saysQueue(t.refuse(req), i+1)
		waiters = append(waiters, req)
	}
	t.mustCancel(waiters[1])
	t.saysQueue(t.refused("a"), 2)
	t.saysQueue(t.refuse(waiters[0]), 2)
	t.saysQueue(t.waits(waiters[0], 1), 2)
	t.saysQueue(t.waits(waiters[2], 2), 2)
}

// saysQueue fails the run unless the reply reports a queue of this length.
func (t *T) saysQueue(b driver.Blocker, want int) {
	t.Helper()
	t.want(b.Queue == want, "Queue = %d, want %d", b.Queue, want)
}
