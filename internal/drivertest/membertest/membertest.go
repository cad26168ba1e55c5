// Package membertest is the conformance suite of driver.Member: what a store must
// do to be a member of a quorum. Package enginetest is the suite of driver.Engine.
package membertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Harness tells the suite how to reach one member.
type Harness struct {
	// Open returns a member on an empty store of its own, in quarantine or
	// without a marker. It is called once per case. The suite closes it.
	Open func(testing.TB) driver.Member

	// Engine returns an engine on a member's store, which the suite does not
	// close.
	Engine func(testing.TB, driver.Member) driver.Engine

	// Restart empties the member's store, like a server that restarts without its data. The
	// member stays open.
	Restart func(testing.TB, driver.Member)

	// Unit is the suite's unit of time, as in enginetest.Harness.
	Unit time.Duration

	// Bubble runs a case in virtual time, as synctest.Test does. Nil means
	// real time.
	Bubble func(*testing.T, func(*testing.T))
}

// A rule is one rule of the contract. Run fails t if the member breaks it.
type rule struct {
	name string
	run  func(t *T)
}

// Run checks the members of h, each rule as a subtest on a store of its own.
func Run(t *testing.T, h Harness) {
	bubble := h.Bubble
	if bubble == nil {
		bubble = func(t *testing.T, f func(*testing.T)) { f(t) }
	}
	for _, rules := range [][]rule{proposeRules(), renewRules(), withdrawRules(), breakRules(), quarantineRules(), engineRules()} {
		for _, r := range rules {
			t.Run(r.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) { r.run(newT(t, h)) })
			})
		}
	}
}

// A T runs one rule against one member that is not in quarantine.
type T struct {
	testing.TB
	driver.Member
	features driver.Features
	harness  Harness
}

func newT(tb testing.TB, h Harness) *T {
	m := h.Open(tb)
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	features, err := driver.FeaturesOf(m)
	if err != nil {
		tb.Fatal(err)
	}
	t := &T{TB: tb, Member: m, features: features, harness: h}
	t.admit()
	return t
}

func (t *T) admit() {
	t.Helper()
	err := t.Admit(t.Context())
	t.need(err == nil, "Admit: %v", err)
}

func (t *T) units(n int) time.Duration { return time.Duration(n) * t.harness.Unit }

// early is how much earlier than its TTL a lease may seem to end.
const early = 2 * time.Millisecond

// ask returns a proposal with a fresh lease ID, and a token from the member's clock that is above
// its counter.
func (t *T) ask(name string, ttl time.Duration) driver.ProposeRequest {
	t.Helper()
	probe := driver.ProposeRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), Proposer: driver.NewProposer(), TTL: ttl, Token: 2, Quarantine: t.units(4)}
	reply := t.propose(probe)
	probe.LeaseID, probe.Lead = lockinfo.NewLeaseID(), time.Second
	probe.Token = (max(reply.Clock, reply.Counter) + 2) &^ 1
	probe.Holder = lockinfo.Holder{Host: "web-3", PID: 812, Labels: map[string]string{"team": "a b"}}
	return probe
}

// propose sends a proposal, which must not fail.
func (t *T) propose(req driver.ProposeRequest) driver.ProposeReply {
	t.Helper()
	reply, err := t.Propose(t.Context(), req)
	t.need(err == nil, "Propose: %v", err)
	return reply
}

// vote sends a proposal. The vote must be want.
func (t *T) vote(what string, req driver.ProposeRequest, want driver.Vote) driver.ProposeReply {
	t.Helper()
	reply := t.propose(req)
	t.need(reply.Vote == want, "%s: vote %d, want %d (%+v)", what, reply.Vote, want, reply)
	return reply
}

// accepted sends a proposal that must be accepted.
func (t *T) accepted(req driver.ProposeRequest) driver.ProposeRequest {
	t.Helper()
	reply := t.vote("proposal", req, driver.VoteAccepted)
	t.need(reply.Token == req.Token && reply.Counter == req.Token, "token %d and counter %d after an accepted %d", reply.Token, reply.Counter, req.Token)
	return req
}

// take sends a fresh proposal, which must be accepted.
func (t *T) take(name string, ttl time.Duration) driver.ProposeRequest {
	t.Helper()
	return t.accepted(t.ask(name, ttl))
}

func (t *T) renew(req driver.RenewRequest) driver.RenewReply {
	t.Helper()
	replies := t.Renew(t.Context(), []driver.RenewRequest{req})
	t.need(len(replies) == 1, "%d replies to 1 request", len(replies))
	return replies[0]
}

// repair returns the request that repairs the lease of the proposal req.
func (t *T) repair(req driver.ProposeRequest) driver.RenewRequest {
	return driver.RenewRequest{
		Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL,
		Repair: true, Token: req.Token, Holder: req.Holder, Quarantine: req.Quarantine,
	}
}

// extend extends the lease of req, which must be live.
func (t *T) extend(req driver.ProposeRequest, ttl time.Duration) {
	t.Helper()
	t.renewed(driver.RenewRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: ttl}, req.Token)
}

// repaired repairs the lease of req, which must be possible.
func (t *T) repaired(req driver.ProposeRequest) {
	t.Helper()
	t.renewed(t.repair(req), req.Token)
}

// renewed renews one lease, which must be live and have the token.
func (t *T) renewed(req driver.RenewRequest, token uint64) {
	t.Helper()
	reply := t.renew(req)
	t.need(reply.Err == nil && reply.Token == token, "Renew: %+v, want token %d", reply, token)
}

// withdrawal returns the request that withdraws the proposal req.
func withdrawal(req driver.ProposeRequest) driver.WithdrawRequest {
	return driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Proposer: req.Proposer, Token: req.Token, Lead: req.Lead}
}

// ofReleased returns the request that withdraws the lease of req because it was released.
func ofReleased(req driver.ProposeRequest) driver.WithdrawRequest {
	return driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Released: true}
}

// ends withdraws a lease, which must be live and have the token.
func (t *T) ends(what string, req driver.WithdrawRequest, token uint64) {
	t.Helper()
	got, err := t.Withdraw(t.Context(), req)
	t.need(err == nil && got == token, "%s = %d, %v; want the token that was ended, %d", what, got, err, token)
}

// endsNothing withdraws a lease that must not be there.
func (t *T) endsNothing(what string, req driver.WithdrawRequest) {
	t.Helper()
	_, err := t.Withdraw(t.Context(), req)
	t.lost(what, err)
}

// mustWithdraw withdraws the proposal req, which must end a lease.
func (t *T) mustWithdraw(req driver.ProposeRequest) {
	t.Helper()
	t.ends("Withdraw", withdrawal(req), req.Token)
}

// want reports an error with the message unless ok is true.
func (t *T) want(ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// need ends the test with the message unless ok is true.
func (t *T) need(ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// lost fails unless err is driver.ErrLost.
func (t *T) lost(what string, err error) {
	t.Helper()
	t.want(errors.Is(err, driver.ErrLost), "%s: error %v, want ErrLost", what, err)
}

// holding returns the lease of req, which must be live.
func (t *T) holding(req driver.ProposeRequest) lockinfo.Holding {
	t.Helper()
	lock := t.inspect(req.Name)
	t.need(len(lock.Holders) == 1 && lock.Holders[0].LeaseID == req.LeaseID && lock.Holders[0].Token == req.Token && !lock.Holders[0].Released,
		"holders %+v, want the lease with token %d", lock.Holders, req.Token)
	return lock.Holders[0]
}

// lasts fails unless the lease of req is live, for a time between least and most.
func (t *T) lasts(req driver.ProposeRequest, least, most time.Duration) {
	t.Helper()
	left := t.holding(req).ExpiresIn
	t.want(left >= least && left <= most, "the lease of %q lasts for another %s, want %s to %s", req.Name, left, least, most)
}

// counter fails unless the counter of name is want.
func (t *T) counter(name string, want uint64) {
	t.Helper()
	last := t.inspect(name).LastToken
	t.want(last == want, "the counter of %q is %d, want %d", name, last, want)
}

// untouched fails if "a" has a lease or a counter.
func (t *T) untouched() {
	t.Helper()
	t.free("a")
	t.counter("a", 0)
}

// free fails unless name has no lease.
func (t *T) free(name string) {
	t.Helper()
	lock := t.inspect(name)
	t.need(len(lock.Holders) == 0, "holders %+v, want none", lock.Holders)
}

func (t *T) inspect(name string) lockinfo.LockState {
	t.Helper()
	lock, err := t.Inspect(t.Context(), name)
	t.need(err == nil, "Inspect: %v", err)
	return lock
}

// expire waits until the lease of "a" has expired.
func (t *T) expire(limit time.Duration) {
	t.Helper()
	for start := time.Now(); len(t.inspect("a").Holders) != 0; time.Sleep(t.harness.Unit / 10) {
		t.need(time.Since(start) <= limit, "the lease did not end within %s", limit)
	}
}

func engineRules() []rule {
	return []rule{{
		"EndedContextDoesNothing", func(t *T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			t.everyCall(ctx, func(call string, err error) {
				t.want(err != nil && !errors.Is(err, driver.ErrLost), "%s with an ended context: error %v", call, err)
			})
			t.free("a")
		},
	}, {
		"ClosedMemberSaysSo", func(t *T) {
			err := t.Close()
			t.need(err == nil, "Close: %v", err)
			t.everyCall(t.Context(), func(call string, err error) {
				t.want(errors.Is(err, driver.ErrClosed), "%s after Close: error %v, want ErrClosed", call, err)
			})
		},
	}}
}

// everyCall calls each method once, and passes its error to check.
func (t *T) everyCall(ctx context.Context, check func(call string, err error)) {
	id := lockinfo.NewLeaseID()
	_, err := t.Propose(ctx, driver.ProposeRequest{
		Name: "a", LeaseID: id, Proposer: driver.NewProposer(), TTL: t.units(1), Token: uint64(time.Now().UnixMicro()) &^ 1, Lead: time.Second,
	})
	check("Propose", err)
	for _, reply := range t.Renew(ctx, make([]driver.RenewRequest, 2)) {
		check("Renew", reply.Err)
	}
	_, err = t.Withdraw(ctx, driver.WithdrawRequest{Name: "a", LeaseID: id, Released: true, Token: 2})
	check("Withdraw", err)
	check("Admit", t.Admit(ctx))
	_, err = t.Inspect(ctx, "a")
	check("Inspect", err)
}
