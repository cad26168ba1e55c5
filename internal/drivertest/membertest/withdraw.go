package membertest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func withdrawRules() []rule {
	return []rule{
		{"WithdrawEndsLease", withdrawEnds},
		{"WithdrawLeavesGreaterToken", withdrawLeavesGreater},
		{"WithdrawLeavesOthers", withdrawLeavesOthers},
		{"WithdrawLeavesOtherProposers", withdrawLeavesProposers},
		{"WithdrawLeavesConfirmed", withdrawLeavesConfirmed},
		{"WithdrawNeedsProposer", withdrawNeedsProposer},
		{"ReleaseEndsAnyProposers", releaseEndsAny},
		{"WithdrawStopsLateProposal", withdrawStopsLate},
		{"WithdrawOfUnknownToken", withdrawOfUnknownToken},
		{"WithdrawDoesNotFollowWrongClock", withdrawFarAhead},
		{"WithdrawKeepsClosed", withdrawKeepsClosed},
		{"WithdrawCancels", withdrawCancels},
	}
}

func withdrawEnds(t *T) {
	req := t.take("a", t.units(40))
	later := req
	later.Token += 10 // withdraws the smaller tokens too
	t.ends("Withdraw", withdrawal(later), req.Token)
	t.free("a")
	t.endsNothing("second Withdraw", withdrawal(later))
	t.counter("a", later.Token+1)
}

func withdrawLeavesGreater(t *T) {
	req := t.take("a", t.units(40))
	earlier := req
	earlier.Token -= 10
	t.endsNothing("Withdraw of a smaller token", withdrawal(earlier))
	t.holding(req)
	t.counter("a", req.Token) // the lease was not withdrawn
}

func withdrawLeavesOthers(t *T) {
	req := t.take("a", t.units(40))
	other := t.ask("a", t.units(40))
	other.Token = req.Token - 10
	t.endsNothing("Withdraw by another lease ID", withdrawal(other))
	t.holding(req)
	t.counter("a", req.Token)
}

// withdrawStopsLate: a proposal that arrives after its own withdrawal is not accepted.
func withdrawStopsLate(t *T) {
	late := t.ask("a", t.units(40))
	t.endsNothing("Withdraw of a proposal that has not come yet", withdrawal(late))
	t.vote("the proposal, late", late, driver.VoteRefused)
	next := late
	next.Token += 2
	t.accepted(next)
}

func withdrawOfUnknownToken(t *T) {
	req := t.take("a", t.units(40))
	t.ends("Withdraw without a token", ofReleased(req), req.Token)
	t.lost("repair of a withdrawn lease", t.renew(t.repair(req)).Err)
	t.endsNothing("second Withdraw", ofReleased(req))
	t.counter("a", req.Token+1)
}

// withdrawFarAhead: the token came from a wrong clock, so no member accepts its proposal. The
// counter must not rise to it.
func withdrawFarAhead(t *T) {
	wrong := t.ask("a", t.units(40))
	wrong.Token += uint64((10 * time.Minute).Microseconds())
	t.endsNothing("Withdraw of a token far ahead", withdrawal(wrong))
	t.untouched()
	right := wrong
	right.Lead = driver.MaxTokenLead
	t.endsNothing("Withdraw of a token that may still be accepted", withdrawal(right))
	t.counter("a", right.Token+1)
	mine := t.take("b", t.units(40))
	wrong.Name, wrong.LeaseID, wrong.Proposer = "b", mine.LeaseID, mine.Proposer
	t.ends("Withdraw of a smaller token than the one far ahead", withdrawal(wrong), mine.Token)
	t.counter("b", mine.Token+1)
}

func withdrawKeepsClosed(t *T) {
	req := t.take("a", t.units(40))
	keep := ofReleased(req)
	keep.Token, keep.Lead, keep.KeepFor = req.Token, req.Lead, t.units(2)
	t.ends("Withdraw with KeepFor", keep, req.Token)
	start := time.Now()
	keep.KeepFor = t.units(80)
	t.endsNothing("second Withdraw with KeepFor", keep)
	lock := t.inspect("a")
	t.need(len(lock.Holders) == 1 && lock.Holders[0].Released && lock.Holders[0].ExpiresIn <= t.units(2),
		"holders %+v, want one that is released and ends within %s", lock.Holders, t.units(2))
	again := req
	again.Token, again.Replaces = req.Token+10, req.Token
	reply := t.vote("another's proposal", t.ask("a", t.units(4)), driver.VoteHeld)
	t.want(reply.Rival == req.LeaseID && reply.Released, "rival %q, released %t; want %q, released", reply.Rival, reply.Released, req.LeaseID)
	t.vote("the lease's own proposal", again, driver.VoteHeld)
	t.lost("Renew of a lease that is kept closed", t.renew(driver.RenewRequest{Name: "a", LeaseID: req.LeaseID, TTL: t.units(4)}).Err)
	t.lost("repair of a lease that is kept closed", t.renew(t.repair(again)).Err)
	t.expire(t.units(6))
	took := time.Since(start)
	t.want(took >= t.units(2)-early-t.harness.Unit/10, "closed for %s, want %s", took, t.units(2))
}

func withdrawCancels(t *T) {
	req := t.take("a", t.units(40))
	cancel := ofReleased(req)
	cancel.Cancel = true
	t.ends("Withdraw with Cancel", cancel, req.Token)
	again := req
	again.Token += 10
	t.vote("a proposal after the cancel", again, driver.VoteCancelled)
	again.Proposer = driver.NewProposer()
	t.vote("another engine's proposal after the cancel", again, driver.VoteCancelled)
	t.free("a")
	t.take("a", t.units(4))
}
