package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func redeemRequirements() []Requirement {
	return []Requirement{{
		Name:        "RedeemHandsOutOnce",
		Explanation: "Redeem must hand out the payload of a fresh token to one request, and answer every other By Redeemed",
		Needs:       canVault,
		Run:         redeemHandsOutOnce,
	}, {
		Name:        "RedeemsOnceUnderContention",
		Explanation: "check and record must be one step: of many Redeems at once, one must be granted, with its repeats",
		Needs:       canVault,
		Run:         func(t *T) { redeemsOnce(t, t) },
	}, {
		Name:        "RedeemsOnceAcrossEngines",
		Explanation: "of many Redeems at once, through whatever engines, one must be granted, with its repeats",
		Needs:       both(canVault, hasJoin),
		Run:         func(t *T) { redeemsOnce(t, t.join()) },
	}, {
		Name: "RedeemRepeatIsGrantedAgain",
		Explanation: "a repeated Redeem must be answered with the payload for RedeemGrace, whatever others ask for " +
			"meanwhile, and even if the TTL is over",
		Invariant: "I6",
		Needs:     canVault,
		Run:       redeemRepeat,
	}, {
		Name:        "RedeemRepeatEndsWithGrace",
		Explanation: "a repeated Redeem must be granted until RedeemGrace after the first time, no longer, however often it comes",
		Invariant:   "I6",
		Needs:       both(canVault, inVirtualTime),
		Run:         redeemGraceEnds,
	}, {
		Name:        "PeekChangesNothing",
		Explanation: "Peek must not redeem a token, nor lengthen it",
		Needs:       canVault,
		Run:         peekChangesNothing,
	}, {
		Name:        "PeekSaysHowLong",
		Explanation: "Peek must say how long a fresh token lasts from now, for the longest TTL and Memory too",
		Needs:       canVault,
		Run:         peekSaysHowLong,
	}}
}

// inVirtualTime reports whether RedeemGrace can be waited for.
func inVirtualTime(t *T) bool { return t.harness.Bubble != nil }

func redeemHandsOutOnce(t *T) {
	first, second := t.store("a", t.units(40)), t.store("b", t.units(40))
	by := t.redeemed(first)
	t.isState(first.Digest, driver.Redeemed)
	others := []driver.LeaseID{driver.NewLeaseID(), first.By}
	for _, other := range append(others, nearMisses(by)...) {
		t.notHandedOut(first.Digest, other, driver.Redeemed)
	}
	t.fresh(second)
	t.redeemed(second)
}

// redeemsOnce sends 8 redeems at once, each twice: once through each T.
func redeemsOnce(t, other *T) {
	for range 4 {
		d := t.store(string(driver.NewLeaseID()), t.units(40))
		bys := make([]driver.LeaseID, 8)
		for i := range bys {
			bys[i] = driver.NewLeaseID()
		}
		replies := make([]driver.VaultReply, 2*len(bys))
		errs := make([]error, len(replies))
		atOnce(len(replies), func(i int) {
			e := []*T{t, other}[i%2]
			replies[i], errs[i] = e.vault().Redeem(t.Context(), driver.RedeemRequest{Digest: d.Digest, By: bys[i/2]})
		})
		granted := map[driver.LeaseID]int{}
		for i, reply := range replies {
			if errs[i] != nil || reply.State != driver.Redeemed {
				t.Errorf("attempt %d: %s, error %v, want %s", i, reply.State, errs[i], driver.Redeemed)
			} else if reply.Granted {
				granted[bys[i/2]]++
				t.sameBytes("Redeem", reply.Payload, string(d.Payload))
			}
		}
		if len(granted) != 1 {
			t.Fatalf("%d of %d requests at once were granted, want 1", len(granted), len(bys))
		}
		for _, times := range granted {
			if times != 2 {
				t.Errorf("the request that was granted was refused when it came again at the same time")
			}
		}
	}
}

func redeemRepeat(t *T) {
	d := t.store("a", t.units(1))
	by := t.redeemed(d)
	t.handedOut(d, by)
	t.notHandedOut(d.Digest, driver.NewLeaseID(), driver.Redeemed)
	t.handedOut(d, by)
	t.isState(d.Digest, driver.Redeemed)
	t.handedOut(d, by)
	t.mustDeposit(d.DepositRequest)
	t.handedOut(d, by)
	time.Sleep(t.units(2))
	for range 2 {
		t.handedOut(d, by)
	}
	t.notHandedOut(d.Digest, driver.NewLeaseID(), driver.Redeemed)
}

func redeemGraceEnds(t *T) {
	req := t.askDeposit("a", 2*driver.RedeemGrace)
	req.Memory = time.Hour
	d := t.mustDeposit(req)
	sent := time.Now()
	by := t.redeemed(d)
	answered := time.Now()
	for _, age := range []time.Duration{driver.RedeemGrace / 2, driver.RedeemGrace - time.Second} {
		time.Sleep(time.Until(sent.Add(age)))
		t.handedOut(d, by)
	}
	time.Sleep(time.Until(answered.Add(driver.RedeemGrace + time.Second)))
	for range 2 {
		reply := t.redeem(d.Digest, by)
		if reply.Granted || len(reply.Payload) != 0 || reply.State != driver.Redeemed {
			t.Errorf("Redeem after RedeemGrace: %s, granted %t, %d bytes of payload; want nothing but %s",
				reply.State, reply.Granted, len(reply.Payload), driver.Redeemed)
		}
	}
}

func peekChangesNothing(t *T) {
	d := t.store("a", t.units(8))
	for range 3 {
		t.fresh(d)
	}
	time.Sleep(t.units(1))
	for range 3 {
		t.lasts("a repeated Peek", d.TTL, d.life(), func() time.Duration { return t.fresh(d) })
	}
	t.redeemed(d)
}

func peekSaysHowLong(t *T) {
	const longest = 10 * 365 * 24 * time.Hour
	req := t.askDeposit("long", longest)
	req.Memory = longest
	long := t.mustDeposit(req)
	d := t.store("a", t.units(8))
	t.lasts("Peek of a new token", d.TTL, d.life(), func() time.Duration { return t.fresh(d) })
	time.Sleep(t.units(1))
	t.lasts("Peek of a token of some age", d.TTL, d.life(), func() time.Duration { return t.fresh(d) })
	t.lasts("Peek of a token for ten years", longest, long.life(), func() time.Duration { return t.fresh(long) })
}
