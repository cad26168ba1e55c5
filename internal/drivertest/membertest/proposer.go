package membertest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// withdrawLeavesProposers: an engine can withdraw its own proposal, but not another engine's for
// the same lease ID.
func withdrawLeavesProposers(t *T) {
	req := t.take("a", t.units(40))
	other := req
	other.Proposer, other.Token = driver.NewProposer(), req.Token+10
	t.endsNothing("Withdraw by another proposer", withdrawal(other))
	t.holding(req)
	late := t.ask("a", t.units(40))
	t.vote("a proposal for a name that is held", late, driver.VoteHeld)
	t.counter("a", other.Token+1) // no copy of the withdrawn proposal may be accepted
	t.mustWithdraw(req)
	t.free("a")
}

// withdrawLeavesConfirmed: a lease that was extended or repaired is confirmed. The engine that has
// proposed it may not know of that, and can neither withdraw nor replace it. The lease can still
// be repaired.
func withdrawLeavesConfirmed(t *T) {
	extended := t.take("a", t.units(40))
	t.extend(extended, t.units(4))
	t.lasts(extended, t.units(30), t.units(40))
	repaired := t.ask("b", t.units(40))
	t.repaired(repaired)
	for _, req := range []driver.ProposeRequest{extended, repaired} {
		t.vote("the late copy of its proposal", req, driver.VoteOwn)
		t.endsNothing("Withdraw of what is confirmed", withdrawal(req))
		t.counter(req.Name, req.Token)
		h := t.holding(req)
		t.want(h.Holder.Host == "web-3", "holding %+v, want the holder of the proposal", h)
		next := req
		next.Token, next.Replaces = req.Token+10, req.Token
		t.vote("the next proposal of its proposer", next, driver.VoteOwn)
		t.holding(req)
	}
}

// withdrawNeedsProposer: a request without a proposer ends no lease, and only a release keeps a
// name closed or cancels.
func withdrawNeedsProposer(t *T) {
	req := t.take("a", t.units(40))
	of := func(w driver.WithdrawRequest) driver.WithdrawRequest {
		w.Name, w.LeaseID, w.Token, w.Lead = "a", req.LeaseID, req.Token+10, req.Lead
		return w
	}
	for what, w := range map[string]driver.WithdrawRequest{
		"no proposer":          of(driver.WithdrawRequest{}),
		"a malformed proposer": of(driver.WithdrawRequest{Proposer: req.Proposer + "0"}),
		"a released proposer":  of(driver.WithdrawRequest{Proposer: req.Proposer, Released: true}),
		"KeepFor":              of(driver.WithdrawRequest{Proposer: req.Proposer, KeepFor: time.Second}),
		"Cancel":               of(driver.WithdrawRequest{Proposer: req.Proposer, Cancel: true}),
	} {
		token, err := t.Withdraw(t.Context(), w)
		t.want(errors.Is(err, driver.ErrInvalid), "Withdraw with %s = %d, %v; want ErrInvalid", what, token, err)
	}
	t.holding(req)
	t.counter("a", req.Token)
	again := req
	again.LeaseID = lockinfo.NewLeaseID()
	t.vote("another's proposal", again, driver.VoteHeld)
}

// releaseEndsAny: a release ends the lease of any proposer.
func releaseEndsAny(t *T) {
	proposed, confirmed := t.take("a", t.units(40)), t.take("b", t.units(40))
	t.extend(confirmed, t.units(40))
	for _, req := range []driver.ProposeRequest{proposed, confirmed} {
		release := ofReleased(req)
		release.Token = req.Token - 10
		t.ends("release by an engine that knows of a smaller token", release, req.Token)
		t.free(req.Name)
		t.vote("the late copy of the proposal", req, driver.VoteRefused)
	}
}
