package membertest

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func renewRules() []rule {
	return []rule{
		{"RenewLengthens", renewLengthens},
		{"RenewOfLostIsLost", renewOfLost},
		{"RenewOfTokenLeavesOthers", renewOfToken},
		{"RenewAnswersEachInOrder", renewAnswersEach},
		{"RenewKeepsSince", renewKeepsSince},
		{"RepairsLostLease", repairsLost},
		{"RepairTellsSince", repairTellsSince},
		{"RepairsUnknownLease", repairsUnknown},
		{"RepairReplacesSmallerToken", repairReplacesSmaller},
		{"RepairNotAboveCounter", repairNotAboveCounter},
		{"RepairNotAfterWithdraw", repairNotAfterWithdraw},
		{"RepairNotOverOthers", repairNotOverOthers},
		{"RepairNotAfterCancel", repairNotAfterCancel},
		{"RepairNotFarFromClock", repairNotFarFromClock},
	}
}

func renewLengthens(t *T) {
	req := t.take("a", t.units(4))
	for _, ttl := range []time.Duration{t.units(40), t.units(2)} {
		t.extend(req, ttl)
	}
	t.lasts(req, t.units(30), t.units(40))
}

func renewOfLost(t *T) {
	never := t.ask("a", t.units(4))
	plain := driver.RenewRequest{Name: "a", LeaseID: never.LeaseID, TTL: t.units(4)}
	t.lost("Renew of a lease that never was", t.renew(plain).Err)
	req := t.take("a", t.units(4))
	t.lost("Renew of another's lease", t.renew(plain).Err)
	plain.LeaseID = req.LeaseID
	t.mustWithdraw(req)
	t.lost("Renew of a withdrawn lease", t.renew(plain).Err)
	t.free("a")
}

// renewOfToken: a lease with another token than the request's is neither lengthened nor
// confirmed.
func renewOfToken(t *T) {
	req := t.take("a", t.units(20))
	plain := driver.RenewRequest{Name: "a", LeaseID: req.LeaseID, TTL: t.units(40)}
	for _, token := range []uint64{req.Token - 2, req.Token + 2} {
		plain.Token = token
		t.lost("Renew of another token", t.renew(plain).Err)
	}
	t.lasts(req, 0, t.units(20))
	t.mustWithdraw(req)
	req = t.take("a", t.units(20))
	plain.LeaseID, plain.Token = req.LeaseID, req.Token
	t.renewed(plain, req.Token)
	t.lasts(req, t.units(30), t.units(40))
}

func renewAnswersEach(t *T) {
	var reqs []driver.RenewRequest
	var want []driver.ProposeRequest
	for i := range 6 {
		req := t.take(fmt.Sprintf("batch/%d", i), t.units(4))
		if i%2 == 0 {
			t.mustWithdraw(req)
		}
		want = append(want, req)
		reqs = append(reqs, driver.RenewRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: t.units(40)})
	}
	replies := t.Renew(t.Context(), reqs)
	t.need(len(replies) == len(reqs), "%d replies to %d requests", len(replies), len(reqs))
	for i, reply := range replies {
		if i%2 == 0 {
			t.lost("Renew of a withdrawn lease in a batch", reply.Err)
		} else if reply.Err != nil || reply.Token != want[i].Token || t.holding(want[i]).ExpiresIn < t.units(30) {
			t.Errorf("reply %d: %+v, want token %d", i, reply, want[i].Token)
		}
	}
}

func renewKeepsSince(t *T) {
	asked := time.Now()
	req := t.take("a", t.units(40))
	answered := time.Now()
	time.Sleep(t.units(1))
	t.accepted(req) // a repeat
	t.extend(req, t.units(80))
	looked := time.Now()
	inspected := t.holding(req).Since
	way := t.vote("a proposal for a held name", t.ask("a", t.units(40)), driver.VoteHeld)
	least, most := looked.Sub(answered)-early, time.Since(asked)+early
	for what, since := range map[string]time.Duration{"Inspect": inspected, "a vote": way.Since} {
		t.want(since >= least && since <= most, "%s: held for %s, want %s to %s", what, since, least, most)
	}
}

// repairTellsSince: a repair sets Since of a lease that the member never had.
func repairTellsSince(t *T) {
	known := t.ask("a", t.units(40))
	req := t.repair(known)
	req.Since = time.Hour
	t.renew(req)
	since := t.holding(known).Since
	t.want(since >= time.Hour-early && since <= time.Hour+t.units(20), "held for %s after a repair, want %s", since, time.Hour)
	unknown := t.ask("b", t.units(40))
	t.renew(t.repair(unknown))
	since = t.holding(unknown).Since
	t.want(since >= 0 && since <= t.units(20), "held for %s after a repair that does not say, want next to nothing", since)
}

func repairsLost(t *T) {
	req := t.take("a", t.units(1))
	t.expire(t.units(4))
	req.TTL = t.units(40)
	t.repaired(req)
	h := t.holding(req)
	t.want(h.Holder.Host == "web-3", "holding %+v after the repair", h)
	t.lasts(req, t.units(30), t.units(40))
	t.repaired(req)
	late := t.ask("a", t.units(4))
	late.LeaseID, late.Token = req.LeaseID, req.Token-2
	t.vote("the late copy of an earlier proposal", late, driver.VoteOwn)
}

func repairsUnknown(t *T) {
	req := t.ask("a", t.units(40))
	t.repaired(req)
	t.holding(req)
	t.counter("a", req.Token)
	t.ends("release", ofReleased(req), req.Token)
	next := t.ask("a", t.units(40))
	next.Token = req.Token
	t.vote("the token of a lease that was repaired", next, driver.VoteRefused)
}

func repairReplacesSmaller(t *T) {
	first := t.take("a", t.units(40))
	second := first
	second.Token, second.TTL = first.Token+10, t.units(4)
	t.repaired(second)
	t.lasts(second, t.units(30), t.units(40)) // what was left of the longer TTL
	t.renewed(t.repair(first), second.Token)
}

func repairNotAboveCounter(t *T) {
	old := t.take("a", t.units(1))
	t.expire(t.units(4))
	next := t.take("a", t.units(1))
	t.expire(t.units(4))
	t.lost("repair after another's tenure", t.renew(t.repair(old)).Err)
	t.free("a")
	t.repaired(next)
}

func repairNotAfterWithdraw(t *T) {
	req := t.take("a", t.units(40))
	t.mustWithdraw(req)
	t.lost("repair of a withdrawn lease", t.renew(t.repair(req)).Err)
	other := t.ask("b", t.units(40))
	t.endsNothing("Withdraw of a lease that never was", withdrawal(other))
	t.lost("repair of a lease that was withdrawn before it came", t.renew(t.repair(other)).Err)
	t.free("a")
	t.free("b")
}

func repairNotOverOthers(t *T) {
	req := t.ask("a", t.units(40))
	other := t.take("a", t.units(4))
	req.Token = other.Token + 10
	t.lost("repair over another lease", t.renew(t.repair(req)).Err)
	t.lasts(other, 0, t.units(4))
}

func repairNotAfterCancel(t *T) {
	req := t.ask("a", t.units(40))
	cancel := ofReleased(req)
	cancel.Cancel = true
	t.endsNothing("cancel of a lease that is not there", cancel)
	t.lost("repair of a cancelled lease", t.renew(t.repair(req)).Err)
	t.free("a")
}

func repairNotFarFromClock(t *T) {
	req := t.ask("a", t.units(40))
	req.Token += uint64((3 * driver.MaxTokenLead).Microseconds())
	t.lost("repair of a token far ahead of the clock", t.renew(t.repair(req)).Err)
	t.untouched()
}
