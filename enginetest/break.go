package enginetest

import (
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func breakRequirements() []Requirement {
	return []Requirement{
		{"BreakEndsLease", "I1", canBreak, breakEnds,
			"Break must end the lease with the token, and free the name in the same step"},
		{"BreakAnswersWithRecord", "", canBreak, breakAnswers,
			"Break must answer with the record of each lease that it ended, by increasing token"},
		{"BreakOfStaleLeavesSuccessor", "I4", canBreak, breakOfStale,
			"Break with the token of an ended lease must change nothing and answer with no record"},
		{"BreakByTokenLeavesOthers", "I4", both(canBreak, canShare), breakLeavesOthers,
			"Break must end the lease with the token and, with Older, those with smaller ones, and no other"},
		{"BreakGivesPermitsBack", "I1", both(canBreak, canCount), breakGivesPermitsBack,
			"Break must give back the permits of the lease that it ends, and no more"},
		{"BreakOpensKeptName", "", canBreak, breakOpensKept,
			"Break with Closed must end what KeepFor keeps closed"},
		{"BreakLeavesKeptName", "", canBreak, breakLeavesKept,
			"Break without Closed must leave what KeepFor keeps closed, even if it was live when the break was decided"},
		{"BreakOfClosedLeavesLease", "I4", canBreak, breakOfClosed,
			"Break with Closed must leave live leases"},
		{"BreakTwiceIsOnce", "I6", canBreak, breakTwice,
			"a repeated Break must end nothing else and answer as the first time"},
		{"TokensGrowOverBreak", "I2", canBreak, tokensGrowOverBreak,
			"a grant must carry a greater token than every earlier grant of the name that was broken"},
		{"BreakHandsOver", "I7", both(canBreak, canQueue), breakHandsOver,
			"Break must grant the lock to the first of the queue in the same step, and leave the places behind it"},
		{"BreaksAreRemembered", "", canBreak, breaksRemembered,
			"Breaks must return who broke a lease of the name, why and when, whoever has the lock by then"},
		{"BreaksAreBounded", "I11", canBreak, breaksBounded,
			"of one name the latest MaxBreaks breaks must be remembered, and no more"},
		{"BreaksAreForgotten", "I11", both(canBreak, inVirtualTime), breaksForgotten,
			"the record of a break must be remembered for BreakMemory, and no longer"},
		{"RefusesBreakIfUnsupported", "I12", func(t *T) bool { return idle(t).Breaker != nil }, refusesBreak,
			"without Capabilities.Break Break must fail with ErrUnsupported and change nothing"},
	}
}

func canBreak(t *T) bool { return t.Features.Breaker != nil }

const (
	author = "ada@ops-1"
	reason = `its "node" is gone: 日本`
)

// breakOf returns a request to break one lease.
func breakOf(l lease) driver.BreakRequest {
	return driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: l.Name, Token: l.token, Author: author, Reason: reason}
}

// older returns req with Older, so that it also breaks leases with smaller tokens.
func older(req driver.BreakRequest) driver.BreakRequest {
	req.Older = true
	return req
}

// closed returns req with Closed, so that it ends what KeepFor keeps closed.
func closed(req driver.BreakRequest) driver.BreakRequest {
	req.Closed = true
	return req
}

// mustBreak sends a break, which must succeed.
func (t *T) mustBreak(req driver.BreakRequest) []lockinfo.Broken {
	t.Helper()
	broken, err := t.Features.Breaker.Break(t.Context(), req)
	t.must("Break", req.Name, err)
	return broken
}

// breaks returns the records of the breaks of a name.
func (t *T) breaks(name string) []lockinfo.Broken {
	t.Helper()
	broken, err := t.Features.Breaker.Breaks(t.Context(), name)
	t.must("Breaks", name, err)
	return broken
}

// breaksOnly sends a break, which must end exactly the leases of want.
func (t *T) breaksOnly(req driver.BreakRequest, want ...lease) []lockinfo.Broken {
	t.Helper()
	broken := t.mustBreak(req)
	t.records("Break", broken, want...)
	return broken
}

// records fails the run unless broken contains the records of exactly the leases of want.
func (t *T) records(what string, broken []lockinfo.Broken, want ...lease) {
	t.Helper()
	var got, ids []lockinfo.LeaseID
	for _, b := range broken {
		got = append(got, b.LeaseID)
	}
	for _, l := range want {
		ids = append(ids, l.LeaseID)
	}
	t.need(slices.Equal(got, ids), "%s: records of %v, want of %v", what, got, ids)
}

func breakEnds(t *T) {
	l := t.take("a", t.units(40))
	t.mustBreak(breakOf(l))
	t.free("a")
	t.lost("Extend of a lease that was broken", t.extend(l, t.units(80)))
	t.lost("Release of a lease that was broken", t.release(l))
	t.take("a", t.units(8))
}

func breakAnswers(t *T) {
	l := t.grant(t.askWhole("a", t.units(40)))
	br := breakOf(l)
	broken := t.breaksOnly(br, l)
	b := broken[0]
	t.want(b.ID == br.ID && b.Token == l.token && b.Author == author && b.Reason == reason && sameHolder(b.Holder, l.Holder) && b.Mode == l.Mode,
		"Break answers %+v, want token %d, mode, holder, author and reason whole", b, l.token)
	t.want(b.Ago >= 0 && b.Ago <= t.slack(), "Break was %s ago when it was answered", b.Ago)
	t.breaksOnly(older(driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "unknown", Token: l.token, Author: author}))
	t.records("Breaks", t.breaks("unknown"))
	if canShare(t) {
		first, second := t.grant(askShared("s", t.units(40))), t.grant(askShared("s", t.units(40)))
		t.breaksOnly(older(breakOf(second)), first, second)
	}
}

func breakOfStale(t *T) {
	stale := t.take("a", t.units(40))
	t.mustRelease(stale)
	l := t.take("a", t.units(40))
	t.breaksOnly(breakOf(stale))
	t.breaksOnly(older(breakOf(stale)))
	later := l
	later.token++
	t.breaksOnly(breakOf(later))
	t.live(l)
	t.counts("a", 1, l) // a refused request may use a token in a quorum
	t.refused("a")
	for _, b := range t.breaks("a") { // a member of a quorum may still have had the stale lease
		t.want(b.LeaseID == stale.LeaseID, "a record of %+v after breaks that ended nothing", b)
	}
	t.mustRelease(l)
}

func breakLeavesOthers(t *T) {
	var all []lease
	for range 4 {
		all = append(all, t.grant(askShared("a", t.units(40))))
	}
	t.breaksOnly(breakOf(all[1]), all[1])
	for _, l := range []lease{all[0], all[2], all[3]} {
		t.live(l)
	}
	t.refused("a")
	t.breaksOnly(older(breakOf(all[2])), all[0], all[2])
	t.live(all[3])
	t.refused("a")
}

func breakGivesPermitsBack(t *T) {
	l := t.grant(askPermits("a", 2, 5, t.units(40)))
	other := t.grant(askPermits("a", 3, 5, t.units(40)))
	b := t.breaksOnly(breakOf(l), l)[0]
	t.want(b.Mode == l.Mode, "record of a lease with mode %s, want %s", b.Mode, l.Mode)
	t.refuse(askPermits("a", 3, 5, t.units(8)))
	t.grant(askPermits("a", 2, 5, t.units(8)))
	t.live(other)
}

func breakOpensKept(t *T) {
	l := t.take("a", t.units(40))
	t.mustKeep(l, t.units(40))
	t.refused("a")
	t.breaksOnly(closed(breakOf(l)), l)
	t.take("a", t.units(8))
	if canShare(t) {
		l := t.grant(askShared("s", t.units(40)))
		t.mustKeep(l, t.units(40))
		t.breaksOnly(older(closed(breakOf(l))), l)
		t.take("s", t.units(8))
	}
}

func breakLeavesKept(t *T) {
	l := t.take("a", t.units(40))
	t.mustKeep(l, t.units(40))
	t.breaksOnly(breakOf(l))
	t.breaksOnly(older(breakOf(l)))
	t.refused("a")
	if canShare(t) {
		kept, other := t.grant(askShared("s", t.units(40))), t.grant(askShared("s", t.units(40)))
		t.mustKeep(kept, t.units(40))
		t.breaksOnly(older(breakOf(other)), other)
		t.refused("s")
	}
}

func breakOfClosed(t *T) {
	l := t.take("a", t.units(40))
	t.breaksOnly(closed(breakOf(l)))
	t.breaksOnly(older(closed(breakOf(l))))
	t.live(l)
	if canShare(t) {
		kept, other := t.grant(askShared("s", t.units(40))), t.grant(askShared("s", t.units(40)))
		t.mustKeep(kept, t.units(40))
		t.breaksOnly(older(closed(breakOf(other))), kept)
		t.live(other)
	}
}

func breakTwice(t *T) {
	l := t.take("a", t.units(40))
	req := older(breakOf(l))
	t.breaksOnly(req, l)
	next := t.take("a", t.units(40))
	t.breaksOnly(req, l)
	t.live(next)
	t.records("Breaks", t.breaks("a"), l)
}

func tokensGrowOverBreak(t *T) {
	t.tokensGrow(t.take("a", t.units(40)), func(l lease) { t.mustBreak(breakOf(l)) })
}

func breakHandsOver(t *T) {
	l := t.take("a", t.units(40))
	first, second := t.queue("a", 1), t.queue("a", 2)
	t.breaksOnly(older(breakOf(l)), l)
	next := t.handed(first)
	t.above(l.token, next)
	t.waiting("a", second)
}

func breaksRemembered(t *T) {
	t.records("Breaks", t.breaks("a"))
	var all []lease
	for range 2 {
		l := t.take("a", t.units(40))
		t.mustBreak(breakOf(l))
		all = append(all, l)
		time.Sleep(t.units(1))
	}
	t.mustRelease(t.take("a", t.units(40)))
	broken := t.breaks("a")
	t.records("Breaks", broken, all...)
	for i, b := range broken {
		t.want(b.Author == author && b.Reason == reason && b.Token == all[i].token, "record %+v, want token %d, author and reason whole", b, all[i].token)
		t.fails("the record", b.Err(), driver.ErrLost)
		t.fails("the record", b.Err(), driver.ErrBroken)
		least := t.units(2 - i)
		t.want(b.Ago >= least-early && b.Ago <= least+t.units(2), "broken %s ago, want a little more than %s", b.Ago, least)
	}
}

func breaksBounded(t *T) {
	var all []lease
	for range driver.MaxBreaks + 2 {
		l := t.take("a", t.units(40))
		t.mustBreak(breakOf(l))
		all = append(all, l)
	}
	t.records("Breaks", t.breaks("a"), all[2:]...)
}

func breaksForgotten(t *T) {
	l := t.take("a", t.units(40))
	t.mustBreak(breakOf(l))
	time.Sleep(driver.BreakMemory - t.slack())
	t.records("Breaks", t.breaks("a"), l)
	later := t.take("a", t.units(40))
	t.mustBreak(breakOf(later))
	time.Sleep(t.units(1))
	t.records("Breaks after BreakMemory", t.breaks("a"), later)
}

func refusesBreak(t *T) {
	l := t.take("a", t.units(40))
	_, err := idle(t).Breaker.Break(t.Context(), breakOf(l))
	t.fails("Break", err, driver.ErrUnsupported)
	t.live(l)
}
