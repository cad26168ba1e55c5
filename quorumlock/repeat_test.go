package quorumlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// TestRepeatByAnotherEngine checks that an engine finds the lease of a request that another engine
// carried out.
func TestRepeatByAnotherEngine(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(time.Second)
		other := r.another()
		other.links[0].slow(10 * time.Millisecond)
		other.links[1].slow(20 * time.Millisecond)
		other.links[2].slow(time.Millisecond) // it would accept a token of the other engine first
		if again := other.grant(h.AcquireRequest); again.token != h.token {
			r.Errorf("token of the repeat %d, want %d", again.token, h.token)
		}
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, 0}) {
			r.Errorf("members have %v, want nothing of a second token", got)
		}
		r.mustRelease(h)
		settle(time.Second)
		r.free("a")
	})
}

// TestAmbiguousRepeat checks that a repeat gets no second token if the members that answer cannot
// show whether the first request was granted.
func TestAmbiguousRepeat(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(time.Second)
		other := r.another()
		other.links[0].set(down)
		other.fails(h.AcquireRequest, quorumlock.ErrNoQuorum)
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, 0}) {
			r.Errorf("members have %v, want the first lease and nothing else", got)
		}
		if err := r.extend(h); err != nil {
			r.Errorf("Extend: %v", err)
		}
	})
}

// TestRepeatOfHalfALease checks that a repeat replaces the proposals of a request that was
// certainly not granted, with a new token.
func TestRepeatOfHalfALease(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		req := ask("a")
		token := uint64(time.Now().UnixMicro())
		half, err := r.stores[0].Propose(r.Context(), driver.ProposeRequest{
			Name: "a", LeaseID: req.LeaseID, Proposer: driver.NewProposer(), TTL: time.Minute, Token: token, Lead: time.Second,
		})
		if err != nil || half.Vote != driver.VoteAccepted {
			r.Fatalf("%+v, %v", half, err)
		}
		settle(time.Second)
		h := r.grant(req)
		if h.token <= token {
			r.Errorf("token %d, want more than %d", h.token, token)
		}
		if err := r.extend(h); err != nil {
			r.Error(err)
		}
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
			r.Errorf("members have %v, want %d", got, h.token)
		}
	})
}

// TestReleaseByAnotherEngine checks that an engine may release a lease that it did not acquire: no
// member repairs the lease afterwards.
func TestReleaseByAnotherEngine(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(0)
		r.another().mustRelease(h)
		settle(time.Second)
		reply := r.stores[2].Renew(r.Context(), []driver.RenewRequest{{
			Name: "a", LeaseID: h.LeaseID, TTL: ttl, Repair: true, Token: h.token,
		}})[0]
		if !isLost(reply.Err) {
			r.Errorf("a late repair after the release: %+v", reply)
		}
		if err := r.extend(h); !isLost(err) {
			r.Errorf("Extend after the release: %v", err)
		}
		r.free("a")
	})
}
