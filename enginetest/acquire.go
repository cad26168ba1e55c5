package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func acquireRequirements() []Requirement {
	return []Requirement{
		{"GrantsFreeName", "I1", nil, grantsFreeName,
			"a free name must be granted, with a token of 1 to MaxToken"},
		{"RefusesHeldName", "I1", nil, refusesHeldName,
			"a live lease must keep every other lease ID out, and must not change by that"},
		{"GrantsOnceUnderContention", "I1", nil, func(t *T) { grantsOnce(t, t) },
			"check and record must be one atomic step: of many at once, one is granted"},
		{"GrantsOnceAcrossEngines", "I1", hasJoin, func(t *T) { grantsOnce(t, t.join()) },
			"engines on one store must act as one: of many at once, one is granted"},
		{"SharesStoreAcrossEngines", "I1", hasJoin, sharesStore,
			"a lease taken through one engine must bind, and be extended and released by, every other"},
		{"RefusalSaysWho", "", nil, refusalSaysWho,
			"a refusal must carry the holder of the lease in the way, whole"},
		{"RefusalSaysHowLong", "", nil, refusalSaysHowLong,
			"a refusal must say how long the lease in the way lasts from now"},
		{"RefusalHidesToken", "I4", nil, refusalHidesToken,
			"a refusal must not carry the token of the lease in the way"},
		{"LeaseLastsItsTTL", "I8", nil, leaseLastsItsTTL,
			"a lease must not end before its TTL: an expiry may be late, never early"},
		{"LeaseExpires", "I5", nil, leaseExpires,
			"a lease that is not extended must end soon after its TTL"},
	}
}

// hasJoin reports whether the suite can open a second engine.
func hasJoin(t *T) bool { return t.harness.Join != nil }

func grantsFreeName(t *T) {
	l := t.take("a", t.units(4))
	t.want(l.token >= 1 && l.token <= driver.MaxToken, "token = %d, want 1 to %d", l.token, driver.MaxToken)
	t.live(l)
}

func refusesHeldName(t *T) {
	l := t.take("a", t.units(4))
	t.refuse(ask("a", t.units(40)))
	t.atMost("a lease that was in the way", t.live(l), t.units(4))
	t.mustExtend(l, t.units(4))
	t.want(t.refused("a").Place == 0, "a request that asked for no place in a queue has one")
}

// grantsOnce sends 16 attempts at once, half of them through each T.
func grantsOnce(t, other *T) {
	for range 4 {
		name := string(lockinfo.NewLeaseID())
		reqs := make([]driver.AcquireRequest, 16)
		for i := range reqs {
			reqs[i] = ask(name, t.units(40))
		}
		granted := count(t.acquireAtOnce(reqs, other), driver.Granted)
		t.need(granted == 1, "%d of %d attempts at once were granted, want 1", granted, len(reqs))
	}
}

// acquireAtOnce sends requests at once, half of them through each T.
func (t *T) acquireAtOnce(reqs []driver.AcquireRequest, other *T) []driver.AcquireReply {
	t.Helper()
	replies := make([]driver.AcquireReply, len(reqs))
	atOnce(len(reqs), func(i int) {
		var err error
		replies[i], err = []*T{t, other}[i%2].Engine.Acquire(t.Context(), reqs[i])
		t.want(err == nil, "attempt %d: %v", i, err)
	})
	return replies
}

// count returns how many replies have the outcome.
func count(replies []driver.AcquireReply, outcome driver.Outcome) (n int) {
	for _, r := range replies {
		if r.Outcome == outcome {
			n++
		}
	}
	return n
}

func sharesStore(t *T) {
	other := t.join()
	l := t.take("a", t.units(4))
	other.refused("a")
	other.mustExtend(l, t.units(40))
	t.atLeast("a lease that was extended through the other engine", t.live(l), t.units(30))
	other.mustRelease(l)
	t.take("a", t.units(4))
}

// wholeHolder returns a holder with a value in every field, with characters that encodings often
// handle wrongly.
func (t *T) wholeHolder() lockinfo.Holder {
	h := lockinfo.Holder{
		Host:   "web-3",
		PID:    812,
		Label:  "billing {worker}",
		Reason: "it's \"nightly\"; 100 % of Müller's\n\\报表\x7f",
		Labels: map[string]string{"team": "a|b:c", "": "empty key", "zone ": "", "ключ": "<&>"},
	}
	if !t.Features.Callers {
		h.Caller = "shop {main}"
	}
	return h
}

// askWhole returns a request with wholeHolder.
func (t *T) askWhole(name string, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Holder = t.wholeHolder()
	return req
}

func refusalSaysWho(t *T) {
	l := t.grant(t.askWhole("a", t.units(8)))
	t.sameHolder("a refusal", t.refused("a").Holder, l.Holder)
	t.take("b", t.units(8))
	t.sameHolder("a refusal because of a lease without a holder", t.refused("b").Holder, lockinfo.Holder{})
}

func refusalSaysHowLong(t *T) {
	l := t.take("a", t.units(8))
	t.lasts("a new lease", t.units(8), l, func() time.Duration { return t.refused("a").ExpiresIn })
	time.Sleep(t.units(3))
	t.lasts("a lease of some age", t.units(8), l, func() time.Duration { return t.refused("a").ExpiresIn })
}

// lasts fails the run unless read returns the correct remaining time of a lease of ttl that was
// granted or extended between l.sent and l.answered.
func (t *T) lasts(what string, ttl time.Duration, l lease, read func() time.Duration) {
	t.Helper()
	asked := time.Now()
	left := read()
	least := ttl - time.Since(l.sent) - early
	most := ttl - asked.Sub(l.answered) + t.slack()
	t.want(left >= least && left <= most, "%s: ExpiresIn = %s, want %s to %s", what, left, least, most)
}

func refusalHidesToken(t *T) {
	t.take("a", t.units(8))
	reply := t.acquire(ask("a", t.units(1)))
	t.want(reply.Token == 0, "Token = %d in a refusal", reply.Token)
}

func leaseLastsItsTTL(t *T) {
	ttl := t.units(2)
	l := t.take("a", ttl)
	for time.Since(l.sent) < ttl {
		if reply := t.acquire(ask("a", ttl)); reply.Outcome != driver.Held {
			age := time.Since(l.sent)
			t.need(age >= ttl-early, "%s after %s of a TTL of %s", outcome(reply), age, ttl)
			return
		}
		time.Sleep(t.Unit / 20)
	}
}

func leaseExpires(t *T) {
	l := t.take("a", t.units(2))
	next := t.eventually(ask("a", t.units(8)), t.units(4))
	_, ok := t.holding(l)
	t.want(!ok, "the expired lease is live beside the new one")
	t.live(next)
}
