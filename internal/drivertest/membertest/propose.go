package membertest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func proposeRules() []rule {
	return []rule{
		{"AcceptsAboveCounter", acceptsAboveCounter},
		{"RefusesUpToCounter", refusesUpToCounter},
		{"RefusesFarFromClock", refusesFarFromClock},
		{"HeldSaysWho", heldSaysWho},
		{"AcceptedRepeats", acceptedRepeats},
		{"RepeatNeverShortens", repeatNeverShortens},
		{"OwnLeaseIsTold", ownLeaseIsTold},
		{"OwnLeaseOfOthersIsTold", ownLeaseOfOthersIsTold},
		{"ProposalsNeedProposer", proposesWithProposer},
		{"ReplacesOwnLease", replacesOwnLease},
		{"ReplacingIsAtomic", replacingIsAtomic},
		{"CounterOutlivesLease", counterOutlivesLease},
		{"BindsAcquire", bindsAcquire},
		{"BoundByAcquire", boundByAcquire},
	}
}

func acceptsAboveCounter(t *T) {
	first := t.take("a", t.units(40))
	first.Holder.Labels["team"] = "changed after the proposal"
	h := t.holding(first)
	if h.Token != first.Token || h.Holder.Host != "web-3" || h.Holder.Labels["team"] != "a b" {
		t.Errorf("holding %+v, want token %d and the holder of the proposal", h, first.Token)
	}
	if h.ExpiresIn > t.units(40) || h.ExpiresIn < t.units(39) {
		t.Errorf("the lease ends in %s, want %s", h.ExpiresIn, t.units(40))
	}
	t.mustWithdraw(first)
	second := t.ask("a", t.units(40))
	second.Token = first.Token + 2
	t.accepted(second)
}

func refusesUpToCounter(t *T) {
	first := t.take("a", t.units(40))
	t.mustWithdraw(first)
	for _, token := range []uint64{first.Token, first.Token - 2} {
		req := t.ask("a", t.units(40))
		req.Token = token
		reply := t.vote("a token that is not above the counter", req, driver.VoteRefused)
		if reply.Counter != first.Token+1 {
			t.Errorf("counter %d after the withdrawal of %d, want the number above", reply.Counter, first.Token)
		}
	}
	t.vote("the late copy of a proposal that was withdrawn", first, driver.VoteRefused)
	t.free("a")
	if last := t.inspect("a").LastToken; last != first.Token+1 {
		t.Errorf("last token %d, want the counter, %d", last, first.Token+1)
	}
}

func refusesFarFromClock(t *T) {
	far := func(ahead time.Duration) driver.ProposeRequest {
		req := t.ask("a", t.units(40))
		req.Token = uint64(int64(req.Token)+ahead.Microseconds()) &^ 1
		return req
	}
	lag := far(-driver.MaxProposalLag - time.Second)
	t.vote("a token far behind the clock", lag, driver.VoteRefused)
	lead := far(3 * time.Second)
	reply := t.vote("a token far ahead of the clock", lead, driver.VoteRefused)
	if diff := int64(lead.Token) - int64(reply.Clock); diff < 2e6 || diff > 4e6 {
		t.Errorf("the clock is %d us behind a token 3 s ahead of it", diff)
	}
	if lock := t.inspect("a"); len(lock.Holders) != 0 || lock.LastToken != 0 {
		t.Errorf("refused proposals left %d leases and the counter %d", len(lock.Holders), lock.LastToken)
	}
	lead.Lead = driver.MaxTokenLead
	t.accepted(lead)
	t.mustWithdraw(lead)
}

func heldSaysWho(t *T) {
	first := t.take("a", t.units(40))
	reply := t.vote("a proposal for a held name", t.ask("a", t.units(80)), driver.VoteHeld)
	if reply.Rival != first.LeaseID || reply.Token != 0 {
		t.Errorf("rival %q and token %d, want %q and none", reply.Rival, reply.Token, first.LeaseID)
	}
	if reply.Released || reply.Since < 0 || reply.Since > t.units(2) || reply.Holder.Host != "web-3" || reply.ExpiresIn > t.units(40) || reply.ExpiresIn < t.units(38) {
		t.Errorf("in the way: %+v", reply.Blocker)
	}
	if left := t.holding(first).ExpiresIn; left > t.units(40) {
		t.Errorf("the lease in the way lasts for another %s", left)
	}
}

func acceptedRepeats(t *T) {
	req := t.take("a", t.units(4))
	req.TTL = t.units(40)
	t.accepted(req)
	if left := t.holding(req).ExpiresIn; left < t.units(30) {
		t.Errorf("%s left after a repeat with %s", left, req.TTL)
	}
}

func repeatNeverShortens(t *T) {
	req := t.take("a", t.units(40))
	short := req
	short.TTL = t.units(2)
	t.accepted(short)
	if left := t.holding(req).ExpiresIn; left < t.units(30) {
		t.Errorf("%s left of %s after a repeat with %s", left, req.TTL, short.TTL)
	}
}

func ownLeaseIsTold(t *T) {
	req := t.take("a", t.units(4))
	other := req
	other.Token, other.TTL = req.Token+10, t.units(40)
	for _, replaces := range []uint64{0, req.Token - 2} {
		other.Replaces = replaces
		if reply := t.vote("another token", other, driver.VoteOwn); reply.Token != req.Token {
			t.Errorf("own token %d, want %d", reply.Token, req.Token)
		}
	}
	if h := t.holding(req); h.Token != req.Token || h.ExpiresIn > t.units(4) {
		t.Errorf("holding %+v, want token %d and no more than %s", h, req.Token, req.TTL)
	}
}

// ownLeaseOfOthersIsTold: another engine has proposed a lease under the lease ID. A proposal of
// this engine with the same token is not a repeat, and one with a greater token does not replace
// that lease.
func ownLeaseOfOthersIsTold(t *T) {
	req := t.take("a", t.units(20))
	other := req
	other.Proposer, other.TTL = driver.NewProposer(), t.units(40)
	for _, token := range []uint64{req.Token, req.Token + 10} {
		other.Token, other.Replaces = token, token-2
		if token > req.Token {
			other.Replaces = req.Token
		}
		if reply := t.vote("another proposer", other, driver.VoteOwn); reply.Token != req.Token || reply.Counter != req.Token {
			t.Errorf("token %d and counter %d, want %d", reply.Token, reply.Counter, req.Token)
		}
	}
	if h := t.holding(req); h.Token != req.Token || h.ExpiresIn > t.units(20) {
		t.Errorf("holding %+v, want token %d and no more than %s", h, req.Token, req.TTL)
	}
	t.accepted(req)
}

// proposesWithProposer: a proposal that no engine could withdraw is refused.
func proposesWithProposer(t *T) {
	req := t.ask("a", t.units(40))
	for _, p := range []driver.Proposer{"", driver.Confirmed, req.Proposer[1:], "/" + req.Proposer[1:]} {
		req.Proposer = p
		if reply, err := t.Propose(t.Context(), req); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("a proposal by %q: %+v, %v; want ErrInvalid", p, reply, err)
		}
	}
	if lock := t.inspect("a"); len(lock.Holders) != 0 || lock.LastToken != 0 {
		t.Errorf("refused proposals left %+v", lock)
	}
}

func replacesOwnLease(t *T) {
	first := t.take("a", t.units(40))
	second := first
	second.Token, second.Replaces, second.TTL = first.Token+10, first.Token, t.units(4)
	t.accepted(second)
	if h := t.holding(second); h.Token != second.Token || h.ExpiresIn < t.units(30) {
		t.Errorf("holding %+v, want token %d and what was left of the longer TTL", h, second.Token)
	}
	t.vote("the late copy of the first proposal", first, driver.VoteOwn)
	if token, err := t.withdraw(first); err == nil {
		t.Errorf("the withdrawal of the first token ended %d", token)
	}
	t.holding(second)
}

// replacingIsAtomic: if the new token is refused, the old lease stays.
func replacingIsAtomic(t *T) {
	first := t.take("a", t.units(40))
	other := t.ask("a", t.units(40))
	other.Token = first.Token + 20
	if _, err := t.withdraw(other); err == nil {
		t.Fatal("a withdrawal ended the lease of another ID")
	}
	second := first
	second.Token, second.Replaces = first.Token+10, first.Token
	t.vote("a token below the counter", second, driver.VoteRefused)
	if h := t.holding(first); h.Token != first.Token {
		t.Errorf("token %d after a refused proposal, want %d", h.Token, first.Token)
	}
}

func counterOutlivesLease(t *T) {
	first := t.take("a", t.units(1))
	t.expire(t.units(4))
	late := t.ask("a", t.units(40))
	late.Token = first.Token
	reply := t.vote("the token of an expired lease", late, driver.VoteRefused)
	if reply.Counter != first.Token {
		t.Errorf("counter %d after the expiry of %d", reply.Counter, first.Token)
	}
}

// bindsAcquire: for an engine on the member's store, a proposal is a lease like any other.
func bindsAcquire(t *T) {
	engine := t.harness.Engine(t, t.Member)
	req := t.take("a", t.units(40))
	single := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: t.units(40)}
	if reply, err := engine.Acquire(t.Context(), single); err != nil || reply.Outcome != driver.Held {
		t.Fatalf("Acquire of a held name: %+v, %v", reply, err)
	}
	t.mustWithdraw(req)
	reply, err := engine.Acquire(t.Context(), single)
	if err != nil || reply.Outcome != driver.Granted || reply.Token <= req.Token+1 {
		t.Fatalf("Acquire: %+v, %v; want a token above %d", reply, err, req.Token+1)
	}
}

func boundByAcquire(t *T) {
	engine := t.harness.Engine(t, t.Member)
	single := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: t.units(40)}
	granted, err := engine.Acquire(t.Context(), single)
	if err != nil || granted.Outcome != driver.Granted {
		t.Fatalf("Acquire: %+v, %v", granted, err)
	}
	req := t.ask("a", t.units(40))
	if reply := t.vote("a proposal for a held name", req, driver.VoteHeld); reply.Rival != single.LeaseID {
		t.Errorf("rival %q, want %q", reply.Rival, single.LeaseID)
	}
	if err := engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: single.LeaseID}); err != nil {
		t.Fatal(err)
	}
	req.Token = granted.Token &^ 1
	t.vote("a token that is not above that of Acquire", req, driver.VoteRefused)
}
