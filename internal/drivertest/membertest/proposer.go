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
	_, err := t.withdraw(other)
	t.lost("Withdraw by another proposer", err)
	if h := t.holding(req); h.Token != req.Token {
		t.Errorf("holding %+v", h)
	}
	late := t.ask("a", t.units(40))
	t.vote("a proposal for a name that is held", late, driver.VoteHeld)
	if last := t.inspect("a").LastToken; last != other.Token+1 {
		t.Errorf("counter %d, want %d: no copy of what was withdrawn may be accepted", last, other.Token+1)
	}
	t.mustWithdraw(req)
	t.free("a")
}

// withdrawLeavesConfirmed: a lease that was extended or repaired is confirmed. The engine that has
// proposed it may not know of that, and can neither withdraw nor replace it. The lease can still
// be repaired.
func withdrawLeavesConfirmed(t *T) {
	extended := t.take("a", t.units(40))
	if reply := t.renew(driver.RenewRequest{Name: "a", LeaseID: extended.LeaseID, TTL: t.units(4)}); reply.Err != nil {
		t.Fatal(reply.Err)
	}
	if left := t.holding(extended).ExpiresIn; left < t.units(30) {
		t.Errorf("%s left after a shorter extension, want %s", left, t.units(40))
	}
	repaired := t.ask("b", t.units(40))
	if reply := t.renew(t.repair(repaired)); reply.Err != nil {
		t.Fatal(reply.Err)
	}
	for _, req := range []driver.ProposeRequest{extended, repaired} {
		t.vote("the late copy of its proposal", req, driver.VoteOwn)
		_, err := t.withdraw(req)
		t.lost("Withdraw of what is confirmed", err)
		h := t.holding(req)
		if last := t.inspect(req.Name).LastToken; last != req.Token || h.Token != req.Token || h.Holder.Host != "web-3" {
			t.Errorf("holding %+v and counter %d, want the lease and its token %d", h, last, req.Token)
		}
		next := req
		next.Token, next.Replaces = req.Token+10, req.Token
		t.vote("the next proposal of its proposer", next, driver.VoteOwn)
		if h := t.holding(req); h.Token != req.Token {
			t.Errorf("holding %+v, want token %d", h, req.Token)
		}
	}
}

// withdrawOfConfirmed: a withdrawal with the proposer Confirmed and its token ends a confirmed
// lease.
func withdrawOfConfirmed(t *T) {
	req := t.take("a", t.units(40))
	rest := req
	rest.Proposer = driver.Confirmed
	_, err := t.withdraw(rest)
	t.lost("Withdraw of what is confirmed, of a proposal", err)
	if reply := t.renew(driver.RenewRequest{Name: "a", LeaseID: req.LeaseID, TTL: t.units(40)}); reply.Err != nil {
		t.Fatal(reply.Err)
	}
	rest.Token -= 2
	_, err = t.withdraw(rest)
	t.lost("Withdraw of a smaller token", err)
	t.holding(req)
	rest.Token = req.Token
	t.mustWithdraw(rest)
	t.free("a")
	t.lost("repair of what was withdrawn", t.renew(t.repair(req)).Err)
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
		if token, err := t.Withdraw(t.Context(), w); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("Withdraw with %s = %d, %v; want ErrInvalid", what, token, err)
		}
	}
	t.holding(req)
	if last := t.inspect("a").LastToken; last != req.Token {
		t.Errorf("counter %d after requests that are wrong, want %d", last, req.Token)
	}
	again := req
	again.LeaseID = lockinfo.NewLeaseID()
	t.vote("another's proposal", again, driver.VoteHeld)
}

// releaseEndsAny: a release ends the lease of any proposer.
func releaseEndsAny(t *T) {
	proposed, confirmed := t.take("a", t.units(40)), t.take("b", t.units(40))
	if reply := t.renew(driver.RenewRequest{Name: "b", LeaseID: confirmed.LeaseID, TTL: t.units(40)}); reply.Err != nil {
		t.Fatal(reply.Err)
	}
	for _, req := range []driver.ProposeRequest{proposed, confirmed} {
		release := driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Released: true, Token: req.Token - 10}
		if token, err := t.Withdraw(t.Context(), release); err != nil || token != req.Token {
			t.Errorf("release by an engine that knows of a smaller token = %d, %v; want %d", token, err, req.Token)
		}
		t.free(req.Name)
		t.vote("the late copy of the proposal", req, driver.VoteRefused)
	}
}
