package quorumlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// failed makes an attempt that fails because of the links, and whose cleanup is slow.
func (r *rig) failed(links [3]linkState) driver.AcquireRequest {
	r.Helper()
	for i, s := range links {
		r.links[i].set(s)
		r.links[i].breaks("Withdraw", slices.Repeat([]error{errReset}, 8)...)
	}
	req := ask("a")
	if reply, err := r.Acquire(r.Context(), req); err == nil {
		r.Fatalf("Acquire: %+v, want an error", reply)
	}
	return req
}

// TestCleanUpLeavesWhatAnotherIsGranted checks the cleanup of an engine that cannot reach the
// members for a while, so that its acquire fails. The caller repeats the acquire through another
// engine, and is granted the lease. The cleanup of the first engine does not end that lease.
func TestCleanUpLeavesWhatAnotherIsGranted(t *testing.T) {
	for name, cut := range map[string][3]linkState{
		"no answers":                       {deaf, deaf, deaf},
		"one answer":                       {up, deaf, deaf},
		"two answers, and a member is off": {deaf, deaf, down},
		"one member, and no answer":        {deaf, reset, reset},
		"late requests":                    {holding, holding, holding},
		"late requests and answers":        {deaf, holding, holding},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(first *rig) {
				req := first.failed(cut)
				second := first.another()
				h := second.grant(req)
				for _, l := range first.links {
					l.deliver()
				}
				settle(5 * time.Second)
				if err := second.extend(h); err != nil {
					first.Errorf("Extend: %v", err)
				}
				settle(time.Second)
				first.another().outcome(ask("a"), driver.Held)
				if has := first.holders(h); slices.Index(has, h.token) < 0 {
					first.Errorf("members have %v", has)
				}
				if err := first.extend(h); err != nil {
					first.Errorf("Extend through the first engine: %v", err)
				}
				first.mustRelease(h)
				settle(5 * time.Second)
				first.free("a")
			})
		})
	}
}

// TestCleanUpLeavesSmallerTokens checks the same if the clock of the first engine is ahead: its
// withdrawals have a greater token than the lease of the other engine.
func TestCleanUpLeavesSmallerTokens(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		req := ask("a")
		ahead := driver.ProposeRequest{
			Name: "a", LeaseID: req.LeaseID, Proposer: driver.NewProposer(), TTL: time.Minute,
			Token: uint64(time.Now().Add(100*time.Millisecond).UnixMicro()) &^ 1, Lead: time.Second,
		}
		if half, err := r.stores[0].Propose(r.Context(), ahead); err != nil || half.Vote != driver.VoteAccepted {
			r.Fatalf("%+v, %v", half, err)
		}
		h := r.grant(req)
		if h.token >= ahead.Token {
			r.Fatalf("token %d, want less than %d: this tests nothing", h.token, ahead.Token)
		}
		for _, late := range []bool{false, true} {
			for _, s := range r.stores {
				if late { // the proposal arrives once more, after its withdrawal
					_, _ = s.Propose(r.Context(), ahead)
				}
				_, _ = s.Withdraw(r.Context(), driver.WithdrawRequest{
					Name: "a", LeaseID: req.LeaseID, Proposer: ahead.Proposer, Token: ahead.Token, Lead: time.Second,
				})
			}
		}
		if has := r.holders(h); !slices.Equal(has, []uint64{0, h.token, h.token}) {
			r.Errorf("members have %v, want two with %d", has, h.token)
		}
		if err := r.extend(h); err != nil {
			r.Errorf("Extend: %v", err)
		}
		r.another().outcome(ask("a"), driver.Held)
	})
}

// TestMemberForgetsBetweenProposalAndWithdrawal checks that a member that restarted without its
// data knows no proposer: it confirms nothing, and a withdrawal finds nothing.
func TestMemberForgetsBetweenProposalAndWithdrawal(t *testing.T) {
	bubble(t, 3, func(first *rig) {
		req := first.failed([3]linkState{deaf, deaf, deaf})
		first.stores[0].Restart()
		h := first.another().grant(req)
		for _, l := range first.links {
			l.deliver()
		}
		settle(5 * time.Second)
		if has := first.holders(h); !slices.Equal(has, []uint64{0, h.token, h.token}) {
			first.Errorf("members have %v, want two with %d", has, h.token)
		}
		if err := first.extend(h); err != nil {
			first.Errorf("Extend: %v", err)
		}
	})
}

// TestHalfALeaseIsSpent checks that an engine leaves proposals of another engine under the same
// lease ID. If that prevents a majority, the lease ID is spent, and the client's cancel removes the
// proposals.
func TestHalfALeaseIsSpent(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		req := ask("a")
		for i, s := range r.stores[:2] {
			half, err := s.Propose(r.Context(), driver.ProposeRequest{
				Name: "a", LeaseID: req.LeaseID, Proposer: driver.NewProposer(), TTL: time.Minute,
				Token: uint64(time.Now().UnixMicro())&^1 + 2*uint64(i), Lead: time.Second,
			})
			if err != nil || half.Vote != driver.VoteAccepted {
				r.Fatalf("%+v, %v", half, err)
			}
		}
		r.outcome(req, driver.Spent)
		settle(time.Second)
		if has := r.holders(held{AcquireRequest: req}); has[0] == 0 || has[1] == 0 || has[2] != 0 {
			r.Errorf("members have %v, want the halves as they were, and nothing beside", has)
		}
		if err := r.Release(r.Context(), driver.ReleaseRequest{Name: "a", LeaseID: req.LeaseID, Cancel: true}); err != nil {
			r.Errorf("cancel: %v", err)
		}
		settle(time.Second)
		r.free("a")
		r.outcome(req, driver.Cancelled)
		r.take("a")
	})
}

// TestTakenBackWhileItIsAskedFor checks that a repeat is not granted a lease that the members
// report but that is withdrawn before it is confirmed. The client's cancel ends the rest.
func TestTakenBackWhileItIsAskedFor(t *testing.T) {
	bubble(t, 3, func(first *rig) {
		req := first.failed([3]linkState{deaf, deaf, deaf})
		second := first.another()
		for _, l := range second.links {
			l.slow(20 * time.Millisecond)
		}
		done := make(chan driver.AcquireReply)
		go func() {
			reply, _ := second.Acquire(second.Context(), req)
			done <- reply
		}()
		settle(15 * time.Millisecond) // the votes are on the way
		for _, i := range []int{0, 1} {
			for token := range first.tokens("a", i) {
				_, err := first.stores[i].Withdraw(first.Context(), driver.WithdrawRequest{Name: "a", LeaseID: req.LeaseID, Released: true, Token: token})
				if err != nil {
					first.Fatal(err)
				}
			}
		}
		if reply := <-done; reply.Outcome != driver.Spent {
			first.Errorf("Acquire: %+v, want Spent", reply)
		}
		if err := second.Release(first.Context(), driver.ReleaseRequest{Name: "a", LeaseID: req.LeaseID, Cancel: true}); err != nil && !isLost(err) {
			first.Errorf("cancel: %v", err)
		}
		settle(time.Second)
		second.free("a")
	})
}

// TestFirstAtAnotherEngine checks that a request with First finds the lease of another engine,
// whole or half, and does not change it.
func TestFirstAtAnotherEngine(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(time.Second)
		again := h.AcquireRequest
		again.First, again.TTL = true, 2*ttl
		other := r.another()
		other.outcome(again, driver.Repeated)
		settle(time.Second)
		if lock, err := r.Inspect(r.Context(), "a"); err != nil || len(lock.Holders) != 1 || lock.Holders[0].Token != h.token || lock.Holders[0].ExpiresIn > ttl {
			r.Errorf("the lease is %+v, %v; want it as it was", lock.Holders, err)
		}
		if err := other.extend(h); err != nil {
			r.Errorf("Extend: %v", err)
		}
		other.outcome(again, driver.Repeated)
	})
}

// TestRepeatConfirmsOneToken checks that an engine that finds a lease and has also proposed another
// token confirms only the token of the lease, and that its own proposal ends.
func TestRepeatConfirmsOneToken(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(time.Second)
		other := r.another()
		other.links[0].slow(time.Millisecond)
		other.links[1].slow(time.Millisecond)
		other.links[2].breaks("Withdraw", errReset, errReset) // the extension arrives first
		if again := other.grant(h.AcquireRequest); again.token != h.token {
			r.Errorf("token of the repeat %d, want %d", again.token, h.token)
		}
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, 0}) {
			r.Errorf("members have %v, want nothing of a second token", got)
		}
	})
}

// tokens returns the tokens of a member's leases.
func (r *rig) tokens(name string, member int) map[uint64]bool {
	r.Helper()
	lock, err := r.stores[member].Inspect(r.Context(), name)
	if err != nil {
		r.Fatal(err)
	}
	all := map[uint64]bool{}
	for _, h := range lock.Holders {
		all[h.Token] = true
	}
	return all
}

// TestReleaseThroughAFailedEngine checks that a caller whose request failed at one engine and
// succeeded at another may release through the first, whether that one has proposed a greater or a
// smaller token.
func TestReleaseThroughAFailedEngine(t *testing.T) {
	bubble(t, 3, func(first *rig) {
		req := first.failed([3]linkState{deaf, reset, reset})
		h := first.another().grant(req)
		for _, l := range first.links {
			l.deliver()
			l.breaks("Withdraw")
		}
		first.mustRelease(h)
		settle(time.Second)
		first.free("a")
		if err := first.extend(h); !isLost(err) {
			first.Errorf("Extend after the release: %v", err)
		}
	})
}

// TestLossLeavesTheRest checks a lease on two members. While its extension by one engine is on the
// way, another engine extends it, and then one of the members loses its memory. For the first engine
// the lease is lost. Nothing that it does about that lets another client in, which would get the
// third member as well: the caller of the second engine has the lease until its deadline.
func TestLossLeavesTheRest(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].breaks("Propose", errReset)
		h := r.take("a")
		r.links[1].slow(400 * time.Millisecond)
		lost := make(chan error, 1)
		go func() { lost <- r.extend(h) }()
		settle(10 * time.Millisecond)
		if err := r.another().extend(h); err != nil {
			r.Fatalf("Extend by another engine: %v", err)
		}
		r.stores[1].Restart()
		if err := <-lost; !isLost(err) {
			r.Fatalf("Extend: %v, want ErrLost", err)
		}
		settle(time.Second)
		r.another().outcome(ask("a"), driver.Held)
	})
}
