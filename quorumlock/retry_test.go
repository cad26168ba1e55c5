package quorumlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestRetryOutlivesWithdrawal checks that a client that repeats its attempt with the same lease ID
// does not lose its lease to the withdrawal of an earlier proposal, which is still on the way.
// INVARIANT I6.
func TestRetryOutlivesWithdrawal(t *testing.T) {
	lifted := func(d time.Duration) uint64 { return uint64(time.Now().Add(d).UnixMicro()) }
	tests := map[string]struct {
		before func(stores []*mem.Member, r *rig)
		min    time.Duration // how far MinToken is ahead of the clocks; 0 for none
		back   time.Duration // how far the client's clock goes back between the attempts
	}{
		"the holder before had a clock that is ahead": {before: func(stores []*mem.Member, r *rig) {
			c := newRig(r.T, stores)
			c.SetClock(100 * time.Millisecond)
			h := c.take("a")
			r.outcome(ask("a"), driver.Held) // the engine learns the token
			c.mustRelease(h)
			settle(10 * time.Millisecond)
		}},
		"MinToken": {min: 500 * time.Millisecond},
		"MinToken further ahead than a guess may be": {min: 10 * time.Minute},
		"the clock goes back":                        {back: 500 * time.Millisecond},
		"nothing special":                            {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				some := stores(t, 3)
				r := newRig(t, some)
				if test.before != nil {
					test.before(some, r)
				}
				req := ask("a")
				if test.min > 0 {
					req.MinToken = lifted(test.min)
				}
				for _, l := range r.links {
					l.set(reset)
				}
				if _, err := r.Acquire(t.Context(), req); err == nil {
					t.Fatal("granted over connections that are reset")
				}
				time.Sleep(3 * time.Millisecond)
				for _, l := range r.links {
					l.set(up)
				}
				r.SetClock(-test.back)
				time.Sleep(2 * time.Millisecond)
				h := r.grant(req)
				settle(time.Second) // for the withdrawals
				if err := r.extend(h); err != nil {
					t.Errorf("the lease was gone after a second: %v", err)
				}
				newRig(t, some).outcome(ask("a"), driver.Held)
				r.mustRelease(h)
				settle(time.Second)
				r.free("a")
			})
		})
	}
}

// TestLateAcceptanceIsNotWithdrawn checks an acceptance of the first attempt that arrives when the
// second is about to succeed.
func TestLateAcceptanceIsNotWithdrawn(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		for _, l := range r.links {
			l.slow(20 * time.Millisecond)
		}
		req := ask("a")
		req.MinToken = uint64(time.Now().Add(500 * time.Millisecond).UnixMicro())
		ctx, cancel := context.WithTimeout(r.Context(), 15*time.Millisecond)
		defer cancel()
		if _, err := r.Acquire(ctx, req); err == nil {
			r.Fatal("granted before there was an answer")
		}
		h := r.grant(req)
		settle(time.Second)
		if err := r.extend(h); err != nil {
			r.Errorf("the lease is gone: %v", err)
		}
		r.mustRelease(h)
		settle(time.Second)
		r.free("a")
	})
}

// TestWrongClockTakesNewID checks that a client whose clock is ahead, and whose token most members
// refuse, tries again under another lease ID. With a smaller token under the same ID, the
// withdrawal of the first token, which one member may have accepted, would end the lease.
func TestWrongClockTakesNewID(t *testing.T) {
	virtual(t, func(t *testing.T) {
		some := stores(t, 3)
		r := newRig(t, some)
		r.SetClock(1500 * time.Millisecond)
		for _, l := range r.links {
			l.slow(2 * time.Millisecond)
		}
		r.links[0].breaks("Propose", errReset)
		r.links[0].breaks("Withdraw", errReset) // the withdrawal is repeated 50 ms later
		r.links[2].breaks("Propose", nil, errRefused)
		lease, err := r.client().TryAcquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if other, err := newRig(t, some).client().TryAcquire(t.Context(), "a", nil); err == nil && lease.Valid() {
			t.Errorf("two leases that are valid, %d and %d", lease.Token(), other.Token())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
