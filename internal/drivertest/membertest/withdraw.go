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
		{"WithdrawOfConfirmed", withdrawOfConfirmed},
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
	if token, err := t.withdraw(later); err != nil || token != req.Token {
		t.Fatalf("Withdraw = %d, %v; want the token that was ended, %d", token, err, req.Token)
	}
	t.free("a")
	_, err := t.withdraw(later)
	t.lost("second Withdraw", err)
	if last := t.inspect("a").LastToken; last != later.Token+1 {
		t.Errorf("counter %d, want %d", last, later.Token+1)
	}
}

func withdrawLeavesGreater(t *T) {
	req := t.take("a", t.units(40))
	earlier := req
	earlier.Token -= 10
	_, err := t.withdraw(earlier)
	t.lost("Withdraw of a smaller token", err)
	if h := t.holding(req); h.Token != req.Token {
		t.Errorf("holding %+v", h)
	}
	if last := t.inspect("a").LastToken; last != req.Token {
		t.Errorf("counter %d, want %d: the lease was not withdrawn", last, req.Token)
	}
}

func withdrawLeavesOthers(t *T) {
	req := t.take("a", t.units(40))
	other := t.ask("a", t.units(40))
	other.Token = req.Token - 10
	_, err := t.withdraw(other)
	t.lost("Withdraw by another lease ID", err)
	if h := t.holding(req); h.Token != req.Token || t.inspect("a").LastToken != req.Token {
		t.Errorf("holding %+v, counter %d", h, t.inspect("a").LastToken)
	}
}

// withdrawStopsLate: a proposal that arrives after its own withdrawal is not accepted.
func withdrawStopsLate(t *T) {
	late := t.ask("a", t.units(40))
	_, err := t.withdraw(late)
	t.lost("Withdraw of a proposal that has not come yet", err)
	t.vote("the proposal, late", late, driver.VoteRefused)
	next := late
	next.Token += 2
	t.accepted(next)
}

func withdrawOfUnknownToken(t *T) {
	req := t.take("a", t.units(40))
	unknown := driver.WithdrawRequest{Name: "a", LeaseID: req.LeaseID, Released: true}
	if token, err := t.Withdraw(t.Context(), unknown); err != nil || token != req.Token {
		t.Fatalf("Withdraw without a token = %d, %v; want %d", token, err, req.Token)
	}
	t.lost("repair of a withdrawn lease", t.renew(t.repair(req)).Err)
	_, err := t.Withdraw(t.Context(), unknown)
	t.lost("second Withdraw", err)
	if last := t.inspect("a").LastToken; last != req.Token+1 {
		t.Errorf("counter %d, want %d", last, req.Token+1)
	}
}

// withdrawFarAhead: the token came from a wrong clock, so no member accepts its proposal. The
// counter must not rise to it.
func withdrawFarAhead(t *T) {
	wrong := t.ask("a", t.units(40))
	wrong.Token += uint64((10 * time.Minute).Microseconds())
	_, err := t.withdraw(wrong)
	t.lost("Withdraw of a token far ahead", err)
	if last := t.inspect("a").LastToken; last != 0 {
		t.Errorf("counter %d, want none", last)
	}
	right := wrong
	right.Lead = driver.MaxTokenLead
	_, err = t.withdraw(right)
	t.lost("Withdraw of a token that may still be accepted", err)
	if last := t.inspect("a").LastToken; last != right.Token+1 {
		t.Errorf("counter %d, want %d", last, right.Token+1)
	}
	mine := t.take("b", t.units(40))
	wrong.Name, wrong.LeaseID, wrong.Proposer = "b", mine.LeaseID, mine.Proposer
	if token, err := t.withdraw(wrong); err != nil || token != mine.Token {
		t.Errorf("Withdraw of a smaller token than the one far ahead = %d, %v", token, err)
	}
	if last := t.inspect("b").LastToken; last != mine.Token+1 {
		t.Errorf("counter %d, want that above the lease's own token, %d", last, mine.Token+1)
	}
}

func withdrawKeepsClosed(t *T) {
	req := t.take("a", t.units(40))
	keep := driver.WithdrawRequest{Name: "a", LeaseID: req.LeaseID, Released: true, Token: req.Token, Lead: req.Lead, KeepFor: t.units(2)}
	if token, err := t.Withdraw(t.Context(), keep); err != nil || token != req.Token {
		t.Fatalf("Withdraw with KeepFor = %d, %v", token, err)
	}
	start := time.Now()
	keep.KeepFor = t.units(80)
	_, err := t.Withdraw(t.Context(), keep)
	t.lost("second Withdraw with KeepFor", err)
	lock := t.inspect("a")
	if len(lock.Holders) != 1 || !lock.Holders[0].Released || lock.Holders[0].ExpiresIn > t.units(2) {
		t.Fatalf("holders %+v, want one that is released and ends within %s", lock.Holders, t.units(2))
	}
	again := req
	again.Token, again.Replaces = req.Token+10, req.Token
	if reply := t.vote("another's proposal", t.ask("a", t.units(4)), driver.VoteHeld); reply.Rival != req.LeaseID || !reply.Released {
		t.Errorf("rival %q, released %t; want %q, released", reply.Rival, reply.Released, req.LeaseID)
	}
	t.vote("the lease's own proposal", again, driver.VoteHeld)
	t.lost("Renew of a lease that is kept closed", t.renew(driver.RenewRequest{Name: "a", LeaseID: req.LeaseID, TTL: t.units(4)}).Err)
	t.lost("repair of a lease that is kept closed", t.renew(t.repair(again)).Err)
	t.expire(t.units(6))
	if took := time.Since(start); took < t.units(2)-early-t.harness.Unit/10 {
		t.Errorf("closed for %s, want %s", took, t.units(2))
	}
}

func withdrawCancels(t *T) {
	req := t.take("a", t.units(40))
	cancel := driver.WithdrawRequest{Name: "a", LeaseID: req.LeaseID, Released: true, Cancel: true}
	if token, err := t.Withdraw(t.Context(), cancel); err != nil || token != req.Token {
		t.Fatalf("Withdraw with Cancel = %d, %v", token, err)
	}
	again := req
	again.Token += 10
	t.vote("a proposal after the cancel", again, driver.VoteCancelled)
	again.Proposer = driver.NewProposer()
	t.vote("another engine's proposal after the cancel", again, driver.VoteCancelled)
	t.free("a")
	t.take("a", t.units(4))
}
