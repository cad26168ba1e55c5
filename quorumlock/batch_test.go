package quorumlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestBatchHasTheLongestLimit checks that a lease with a short TTL does not shorten the time limit
// of the others in its batch.
func TestBatchHasTheLongestLimit(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		long, short := r.take("long"), ask("short")
		short.TTL = 500 * time.Millisecond
		r.grant(short)
		settle(0)
		for _, l := range r.links {
			l.slow(200 * time.Millisecond)
		}
		for i, err := range r.Extend(r.Context(), []driver.ExtendRequest{
			{Name: "long", LeaseID: long.LeaseID, TTL: long.TTL}, {Name: "short", LeaseID: short.LeaseID, TTL: short.TTL},
		}) {
			if err != nil {
				r.Errorf("renewal %d: %v", i, err)
			}
		}
	})
}
