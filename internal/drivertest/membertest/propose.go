package membertest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
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
	t.want(h.Holder.Host == "web-3" && h.Holder.Labels["team"] == "a b", "holding %+v, want the holder of the proposal", h)
	t.lasts(first, t.units(39), t.units(40))
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
		t.want(reply.Counter == first.Token+1, "counter %d after the withdrawal of %d, want the number above", reply.Counter, first.Token)
	}
	t.vote("the late copy of a proposal that was withdrawn", first, driver.VoteRefused)
	t.free("a")
	t.counter("a", first.Token+1)
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
	diff := int64(lead.Token) - int64(reply.Clock)
	t.want(diff >= 2e6 && diff <= 4e6, "the clock is %d us behind a token 3 s ahead of it", diff)
	t.untouched()
	lead.Lead = driver.MaxTokenLead
	t.accepted(lead)
	t.mustWithdraw(lead)
}

func heldSaysWho(t *T) {
	first := t.take("a", t.units(40))
	reply := t.vote("a proposal for a held name", t.ask("a", t.units(80)), driver.VoteHeld)
	t.want(reply.Rival == first.LeaseID && reply.Token == 0, "rival %q and token %d, want %q and none", reply.Rival, reply.Token, first.LeaseID)
	t.want(!reply.Released && reply.Holder.Host == "web-3" && reply.Since >= 0 && reply.Since <= t.units(2) &&
		reply.ExpiresIn >= t.units(38) && reply.ExpiresIn <= t.units(40), "in the way: %+v", reply.Blocker)
	t.lasts(first, 0, t.units(40))
}

func acceptedRepeats(t *T) {
	req := t.take("a", t.units(4))
	req.TTL = t.units(40)
	t.accepted(req)
	t.lasts(req, t.units(30), t.units(40))
}

func repeatNeverShortens(t *T) {
	req := t.take("a", t.units(40))
	short := req
	short.TTL = t.units(2)
	t.accepted(short)
	t.lasts(req, t.units(30), t.units(40))
}

func ownLeaseIsTold(t *T) {
	req := t.take("a", t.units(4))
	other := req
	other.Token, other.TTL = req.Token+10, t.units(40)
	for _, replaces := range []uint64{0, req.Token - 2} {
		other.Replaces = replaces
		reply := t.vote("another token", other, driver.VoteOwn)
		t.want(reply.Token == req.Token, "own token %d, want %d", reply.Token, req.Token)
	}
	t.lasts(req, 0, t.units(4))
}

// ownLeaseOfOthersIsTold checks proposals under a lease ID for which another engine has proposed a
// lease. A proposal of this engine with the same token is not a repeat, and a proposal with a
// greater token does not replace the lease.
func ownLeaseOfOthersIsTold(t *T) {
	req := t.take("a", t.units(20))
	other := req
	other.Proposer, other.TTL = driver.NewProposer(), t.units(40)
	for _, token := range []uint64{req.Token, req.Token + 10} {
		other.Token, other.Replaces = token, token-2
		if token > req.Token {
			other.Replaces = req.Token
		}
		reply := t.vote("another proposer", other, driver.VoteOwn)
		t.want(reply.Token == req.Token && reply.Counter == req.Token, "token %d and counter %d, want %d", reply.Token, reply.Counter, req.Token)
	}
	t.lasts(req, 0, t.units(20))
	t.accepted(req)
}

// proposesWithProposer: a proposal that no engine could withdraw is refused.
func proposesWithProposer(t *T) {
	req := t.ask("a", t.units(40))
	for _, p := range []driver.Proposer{"", req.Proposer[1:], "/" + req.Proposer[1:]} {
		req.Proposer = p
		reply, err := t.Propose(t.Context(), req)
		t.want(errors.Is(err, driver.ErrInvalid), "a proposal by %q: %+v, %v; want ErrInvalid", p, reply, err)
	}
	t.untouched()
}

func replacesOwnLease(t *T) {
	first := t.take("a", t.units(40))
	second := first
	second.Token, second.Replaces, second.TTL = first.Token+10, first.Token, t.units(4)
	t.accepted(second)
	t.lasts(second, t.units(30), t.units(40)) // what was left of the longer TTL
	t.vote("the late copy of the first proposal", first, driver.VoteOwn)
	t.endsNothing("Withdraw of the first token", withdrawal(first))
	t.holding(second)
}

// replacingIsAtomic: if the new token is refused, the old lease stays.
func replacingIsAtomic(t *T) {
	first := t.take("a", t.units(40))
	other := t.ask("a", t.units(40))
	other.Token = first.Token + 20
	t.endsNothing("Withdraw of another lease ID", withdrawal(other))
	second := first
	second.Token, second.Replaces = first.Token+10, first.Token
	t.vote("a token below the counter", second, driver.VoteRefused)
	t.holding(first)
}

func counterOutlivesLease(t *T) {
	first := t.take("a", t.units(1))
	t.expire(t.units(4))
	late := t.ask("a", t.units(40))
	late.Token = first.Token
	reply := t.vote("the token of an expired lease", late, driver.VoteRefused)
	t.want(reply.Counter == first.Token, "counter %d after the expiry of %d", reply.Counter, first.Token)
}

// bindsAcquire: for an engine on the member's store, a proposal is a lease like any other.
func bindsAcquire(t *T) {
	engine := t.harness.Engine(t, t.Member)
	req := t.take("a", t.units(40))
	single := drivertest.Request("a", t.units(40))
	drivertest.Held(t, engine, single)
	t.mustWithdraw(req)
	token := drivertest.Granted(t, engine, single)
	t.need(token > req.Token+1, "Acquire: token %d, want one above %d", token, req.Token+1)
}

func boundByAcquire(t *T) {
	engine := t.harness.Engine(t, t.Member)
	single := drivertest.Request("a", t.units(40))
	granted := drivertest.Granted(t, engine, single)
	req := t.ask("a", t.units(40))
	reply := t.vote("a proposal for a held name", req, driver.VoteHeld)
	t.want(reply.Rival == single.LeaseID, "rival %q, want %q", reply.Rival, single.LeaseID)
	drivertest.Release(t, engine, single)
	req.Token = granted &^ 1
	t.vote("a token that is not above that of Acquire", req, driver.VoteRefused)
}
