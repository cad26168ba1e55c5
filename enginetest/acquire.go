package enginetest

import (
	"sync"
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
	if l.token < 1 || l.token > driver.MaxToken {
		t.Errorf("token = %d, want 1 to %d", l.token, driver.MaxToken)
	}
	t.live(l)
}

func refusesHeldName(t *T) {
	l := t.take("a", t.units(4))
	t.refuse(ask("a", t.units(40)))
	if left := t.live(l); left > t.units(4)+t.slack() {
		t.Errorf("the refusal lengthened the lease in the way to %s", left)
	}
	if t.mustExtend(l, t.units(4)); t.refused("a").Place != 0 {
		t.Errorf("a request that asked for no place in a queue has one")
	}
}

// grantsOnce sends 16 attempts at once, half of them through each T.
func grantsOnce(t, other *T) {
	for range 4 {
		name := string(lockinfo.NewLeaseID())
		replies := make([]driver.AcquireReply, 16)
		errs := make([]error, len(replies))
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range replies {
			e := []driver.Engine{t.Engine, other.Engine}[i%2]
			wg.Go(func() {
				<-start
				replies[i], errs[i] = e.Acquire(t.Context(), ask(name, t.units(40)))
			})
		}
		close(start)
		wg.Wait()
		granted := 0
		for i, r := range replies {
			if errs[i] != nil {
				t.Errorf("attempt %d: %v", i, errs[i])
			} else if r.Outcome == driver.Granted {
				granted++
			}
		}
		if granted != 1 {
			t.Fatalf("%d of %d attempts at once were granted, want 1", granted, len(replies))
		}
	}
}

func sharesStore(t *T) {
	other := t.join()
	l := t.take("a", t.units(4))
	other.refused("a")
	other.mustExtend(l, t.units(40))
	if left := t.live(l); left < t.units(30) {
		t.Errorf("extended through the other engine: %s left, want %s", left, t.units(40))
	}
	other.mustRelease(l)
	t.take("a", t.units(4))
}

// wholeHolder has a value in every field, with the characters that encodings
// trip over.
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

func refusalSaysWho(t *T) {
	req := ask("a", t.units(8))
	req.Holder = t.wholeHolder()
	t.grant(req)
	if got := t.refused("a").Holder; !sameHolder(got, req.Holder) {
		t.Errorf("Holder = %+v, want %+v", got, req.Holder)
	}
	t.take("b", t.units(8))
	if got := t.refused("b").Holder; !sameHolder(got, lockinfo.Holder{}) {
		t.Errorf("Holder = %+v of a lease that gave none", got)
	}
}

func refusalSaysHowLong(t *T) {
	l := t.take("a", t.units(8))
	t.lasts("a new lease", t.units(8), l, func() time.Duration { return t.refused("a").ExpiresIn })
	time.Sleep(t.units(3))
	t.lasts("a lease of some age", t.units(8), l, func() time.Duration { return t.refused("a").ExpiresIn })
}

// lasts fails the run unless read returns the right rest of a lease of ttl that was
// granted or extended between l.sent and l.answered.
func (t *T) lasts(what string, ttl time.Duration, l lease, read func() time.Duration) {
	t.Helper()
	asked := time.Now()
	left := read()
	least := ttl - time.Since(l.sent) - early
	most := ttl - asked.Sub(l.answered) + t.slack()
	if left < least || left > most {
		t.Errorf("%s: ExpiresIn = %s, want %s to %s", what, left, least, most)
	}
}

func refusalHidesToken(t *T) {
	t.take("a", t.units(8))
	if reply := t.acquire(ask("a", t.units(1))); reply.Token != 0 {
		t.Errorf("Token = %d in a refusal", reply.Token)
	}
}

func leaseLastsItsTTL(t *T) {
	ttl := t.units(2)
	l := t.take("a", ttl)
	for time.Since(l.sent) < ttl {
		if reply := t.acquire(ask("a", ttl)); reply.Outcome != driver.Held {
			if age := time.Since(l.sent); age < ttl-early {
				t.Fatalf("%s after %s of a TTL of %s", outcome(reply), age, ttl)
			}
			return
		}
		time.Sleep(t.Unit / 20)
	}
}

func leaseExpires(t *T) {
	l := t.take("a", t.units(2))
	next := t.eventually(ask("a", t.units(8)), t.units(4))
	if _, ok := t.holding(l); ok {
		t.Errorf("the expired lease is live beside the new one")
	}
	t.live(next)
}
