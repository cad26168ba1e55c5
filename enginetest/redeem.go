package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func redeemRequirements() []Requirement {
	return []Requirement{
		{"RedeemHandsOutOnce", "", canVault, redeemHandsOutOnce,
			"Redeem must hand out the payload of a fresh token to one request, and answer every other By Redeemed"},
		{"RedeemsOnceUnderContention", "", canVault, func(t *T) { redeemsOnce(t, t) },
			"check and record must be one step: of many Redeems at once, one must be granted, with its repeats"},
		{"RedeemsOnceAcrossEngines", "", both(canVault, hasJoin), func(t *T) { redeemsOnce(t, t.join()) },
			"of many Redeems at once, through whatever engines, one must be granted, with its repeats"},
		{"RedeemRepeatIsGrantedAgain", "I6", canVault, redeemRepeat,
			"a repeated Redeem must be answered with the payload for RedeemGrace, whatever others ask for " +
				"meanwhile, and even after the TTL"},
		{"RedeemRepeatEndsWithGrace", "I6", both(canVault, inVirtualTime), redeemGraceEnds,
			"a repeated Redeem must be granted until RedeemGrace after the first time, no longer, however often it comes"},
		{"PeekChangesNothing", "", canVault, peekChangesNothing,
			"Peek must not redeem a token, nor lengthen it"},
		{"PeekSaysHowLong", "", canVault, peekSaysHowLong,
			"Peek must say how long a fresh token lasts from now, for the longest TTL and Memory too"},
	}
}

// inVirtualTime reports whether a requirement can wait for RedeemGrace.
func inVirtualTime(t *T) bool { return t.harness.Bubble != nil }

func redeemHandsOutOnce(t *T) {
	first, second := t.store("a", t.units(40)), t.store("b", t.units(40))
	by := t.redeemed(first)
	t.isState(first.proof, driver.Redeemed)
	others := []lockinfo.LeaseID{lockinfo.NewLeaseID(), first.By}
	for _, other := range append(others, nearMisses(by)...) {
		t.notHandedOut(first.proof, other, driver.Redeemed)
	}
	t.fresh(second)
	t.redeemed(second)
}

// redeemsOnce sends 8 redeems at once, each twice: once through each T.
func redeemsOnce(t, other *T) {
	for range 4 {
		d := t.store(string(lockinfo.NewLeaseID()), t.units(40))
		bys := make([]lockinfo.LeaseID, 8)
		for i := range bys {
			bys[i] = lockinfo.NewLeaseID()
		}
		replies := make([]driver.VaultReply, 2*len(bys))
		errs := make([]error, len(replies))
		atOnce(len(replies), func(i int) {
			e := []*T{t, other}[i%2]
			replies[i], errs[i] = e.vault().Redeem(t.Context(), driver.RedeemRequest{Proof: d.proof, By: bys[i/2]})
		})
		granted := map[lockinfo.LeaseID]int{}
		for i, reply := range replies {
			if errs[i] != nil || reply.State != driver.Redeemed {
				t.Errorf("attempt %d: %s, error %v, want %s", i, reply.State, errs[i], driver.Redeemed)
			} else if reply.Granted {
				granted[bys[i/2]]++
				t.sameBytes("Redeem", reply.Payload, string(d.Payload))
			}
		}
		t.need(len(granted) == 1, "%d of %d requests at once were granted, want 1", len(granted), len(bys))
		for _, times := range granted {
			t.want(times == 2, "the request that was granted was refused when it came again at the same time")
		}
	}
}

func redeemRepeat(t *T) {
	d := t.store("a", t.units(1))
	by := t.redeemed(d)
	t.handedOut(d, by)
	t.notHandedOut(d.proof, lockinfo.NewLeaseID(), driver.Redeemed)
	t.handedOut(d, by)
	t.isState(d.proof, driver.Redeemed)
	t.handedOut(d, by)
	t.mustDeposit(d.asked)
	t.handedOut(d, by)
	time.Sleep(t.units(2))
	for range 2 {
		t.handedOut(d, by)
	}
	t.notHandedOut(d.proof, lockinfo.NewLeaseID(), driver.Redeemed)
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
		reply := t.redeem(d.proof, by)
		t.want(!reply.Granted && len(reply.Payload) == 0 && reply.State == driver.Redeemed,
			"Redeem after RedeemGrace: %s, granted %t, %d bytes of payload; want nothing but %s",
			reply.State, reply.Granted, len(reply.Payload), driver.Redeemed)
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
