package quorumlock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestReleaseIsFinished checks that a member that could not be reached gets the release when it
// returns, and that a second release does no harm.
func TestReleaseIsFinished(t *testing.T) {
	for _, state := range []linkState{down, silent, deaf} {
		bubble(t, 3, func(r *rig) {
			h := r.take("a")
			settle(0)
			r.links[2].set(state)
			r.mustRelease(h)
			settle(5 * time.Second)
			next := r.take("a")
			r.links[2].set(up)
			settle(2 * time.Second)
			if got := r.holders(h); got[2] == h.token {
				r.Errorf("state %d: member 3 still has the lease after the release", state)
			}
			if err := r.extend(next); err != nil {
				r.Error(err)
			}
			settle(time.Second)
			if got := r.holders(next); !slices.Equal(got, []uint64{next.token, next.token, next.token}) {
				r.Errorf("state %d: members have %v, want %d", state, got, next.token)
			}
		})
	}
}

// TestCancelIsFinished checks the same for a cancel after a release of the same lease.
func TestCancelIsFinished(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.links[2].set(down)
		r.mustRelease(h)
		err := r.Release(r.Context(), driver.ReleaseRequest{Name: "a", LeaseID: h.LeaseID, Cancel: true})
		if !isLost(err) {
			r.Errorf("Cancel after the release: %v, want ErrLost", err)
		}
		r.links[2].set(up)
		settle(2 * time.Second)
		reply, err := r.stores[2].Propose(r.Context(), driver.ProposeRequest{Name: "a", LeaseID: h.LeaseID, Proposer: driver.NewProposer(), TTL: ttl, Token: h.token + 2})
		if err != nil || reply.Vote != driver.VoteCancelled {
			r.Errorf("member 3 after the cancel: %+v, %v", reply, err)
		}
	})
}

// TestReleaseWithoutMajority checks that the outcome is unknown, and that a repeat settles it.
func TestReleaseWithoutMajority(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.links[0].set(silent)
		r.links[1].set(silent)
		if err := r.release(h); err == nil || isLost(err) || errors.Is(err, driver.ErrUnavailable) {
			r.Errorf("Release by one member: %v, want an unknown outcome", err)
		}
		r.links[0].set(up)
		r.links[1].set(up)
		if err := r.release(h); err != nil && !isLost(err) {
			r.Errorf("repeated Release: %v", err)
		}
		settle(3 * time.Second)
		r.free("a")
	})
}

// TestKeepForIsNotProlonged checks that a member that receives a release with KeepFor late keeps
// the name closed only for the rest of the time.
func TestKeepForIsNotProlonged(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.links[2].set(down)
		start := time.Now()
		err := r.Release(r.Context(), driver.ReleaseRequest{Name: "a", LeaseID: h.LeaseID, KeepFor: 8 * time.Second})
		if err != nil {
			r.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		r.links[2].set(up)
		settle(2 * time.Second)
		lock, err := r.stores[2].Inspect(r.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || !lock.Holders[0].Released {
			r.Fatalf("member 3 has %+v, %v; want it closed", lock.Holders, err)
		}
		if end := time.Since(start) + lock.Holders[0].ExpiresIn; end != 8*time.Second {
			r.Errorf("member 3 closes the name for %s, want 8s", end)
		}
		for time.Since(start) < 8*time.Second {
			r.outcome(ask("a"), driver.Held)
			time.Sleep(time.Second)
		}
		r.take("a")
	})
}
