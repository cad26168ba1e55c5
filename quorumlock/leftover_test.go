package quorumlock_test

import (
	"testing"
	"time"
)

// TestLeftoverIsNoLease checks that a lease released by a majority blocks no client, although the
// release has not reached the members that answer first, and the others are slow to answer.
func TestLeftoverIsNoLease(t *testing.T) {
	for _, n := range []int{3, 5} {
		bubble(t, n, func(r *rig) {
			h := r.take("a")
			settle(0)
			late := n / 2 // members that get the release later
			for _, l := range r.links[:late] {
				l.set(holding)
			}
			r.mustRelease(h)
			settle(time.Millisecond) // so that a token from the clock suffices
			other := r.another()
			for _, l := range other.links[late+1:] {
				l.slow(20 * time.Millisecond)
			}
			start := time.Now()
			next := other.take("a")
			if took := time.Since(start); took != 40*time.Millisecond {
				t.Errorf("%d members: granted after %s, want two round trips of 20ms", n, took)
			}
			// Acceptances of the proposal that gave way do not count. INVARIANT I2.
			has := 0
			for _, token := range other.holders(next) {
				if token == next.token {
					has++
				}
			}
			if has <= n/2 {
				t.Errorf("%d of %d members have the lease, no majority", has, n)
			}
			for _, l := range r.links[:late] {
				l.deliver()
			}
			settle(time.Second)
			other.mustRelease(next)
			settle(time.Second)
			r.free("a")
		})
	}
}

// TestInspectSeesExtension checks that Inspect reports the new end of a lease that a majority has
// extended, although the extension has not reached the member that answers first.
func TestInspectSeesExtension(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.links[0].set(holding)
		h.TTL = 3 * ttl
		if err := r.extend(h); err != nil {
			r.Fatal(err)
		}
		other := r.another()
		other.links[2].slow(20 * time.Millisecond)
		lock, err := other.Inspect(r.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].ExpiresIn < 2*ttl {
			r.Errorf("Inspect: %+v, %v; want a lease of %s", lock, err, h.TTL)
		}
		r.links[0].deliver()
	})
}
