package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// TestSurvivesMinority checks that locks are acquired, extended and released while a minority of
// the members fails in any way, and that tokens grow.
func TestSurvivesMinority(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, state := range []linkState{down, silent, deaf} {
			bubble(t, n, func(r *rig) {
				var last uint64
				for gone := range n {
					for i, l := range r.links { // another minority each time
						l.set(up)
						if (i+gone)%n < n/2 {
							l.set(state)
						}
					}
					h := r.take("a")
					if h.token <= last {
						r.Errorf("%d members, state %d: token %d after %d", n, state, h.token, last)
					}
					last = h.token
					if err := r.extend(h); err != nil {
						r.Errorf("Extend: %v", err)
					}
					r.mustRelease(h)
					settle(0) // requests to deaf members arrive
				}
				for _, l := range r.links {
					l.set(up)
				}
				settle(5 * time.Second)
				r.free("a")
			})
		}
	}
}

// TestNoQuorum checks that without a majority nothing is granted, that the error reports this
// within the time limit, and that no lease remains when the members return.
func TestNoQuorum(t *testing.T) {
	for what, state := range map[string]linkState{"down": down, "silent": silent, "deaf": deaf, "holding": holding} {
		t.Run(what, func(t *testing.T) {
			bubble(t, 3, func(r *rig) {
				r.links[1].set(state)
				r.links[2].set(state)
				start := time.Now()
				err := r.fails(ask("a"), quorumlock.ErrNoQuorum)
				if took := time.Since(start); took > ttl/10 {
					r.Errorf("ErrNoQuorum after %s, want %s", took, ttl/10)
				}
				if !errors.Is(err, driver.ErrUnavailable) {
					r.Errorf("error %v, want one that wraps ErrUnavailable", err)
				}
				settle(0)
				if lock, err := r.stores[0].Inspect(r.Context(), "a"); err != nil || len(lock.Holders) != 0 {
					r.Errorf("member 1 still has %+v, %v", lock.Holders, err)
				}
				if err := r.Release(r.Context(), driver.ReleaseRequest{Name: "b", LeaseID: lockinfo.NewLeaseID()}); err == nil || isLost(err) {
					r.Errorf("Release without a majority: %v", err)
				}
				if _, err := r.Inspect(r.Context(), "a"); !errors.Is(err, quorumlock.ErrNoQuorum) {
					r.Errorf("Inspect without a majority: %v, want ErrNoQuorum", err)
				}
				for _, err := range r.List(r.Context(), "") {
					if !errors.Is(err, driver.ErrUnsupported) {
						r.Errorf("List by members that cannot: %v, want ErrUnsupported", err)
					}
				}
				r.links[1].deliver()
				r.links[2].deliver()
				settle(3 * time.Second)
				r.free("a")
				r.take("a")
			})
		})
	}
}

func isLost(err error) bool { return errors.Is(err, driver.ErrLost) }

// TestTimeLimits checks that the engine waits for a silent member for a tenth of the TTL, within
// bounds, or for the time in the options.
func TestTimeLimits(t *testing.T) {
	for _, test := range []struct{ ttl, option, want time.Duration }{
		{100 * time.Millisecond, 0, 50 * time.Millisecond},
		{8 * time.Second, 0, 800 * time.Millisecond},
		{5 * time.Minute, 0, 2 * time.Second},
		{5 * time.Minute, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		virtual(t, func(t *testing.T) {
			r := newRigWith(t, stores(t, 3), &quorumlock.Options{Timeout: test.option})
			r.links[0].set(silent)
			r.links[1].set(silent)
			req := ask("a")
			req.TTL = test.ttl
			start := time.Now()
			r.fails(req, quorumlock.ErrNoQuorum)
			if took := time.Since(start); took != test.want {
				t.Errorf("TTL %s, option %s: %s, want %s", test.ttl, test.option, took, test.want)
			}
		})
	}
}

// TestLateProposalIsRefused checks that a member refuses a proposal that arrives after its
// withdrawal, when the attempt has ended.
func TestLateProposalIsRefused(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		for _, l := range r.links {
			l.set(holding)
		}
		r.fails(ask("a"), quorumlock.ErrNoQuorum)
		for _, l := range r.links {
			l.set(up) // the proposals are still delayed
		}
		settle(3 * time.Second) // the withdrawals arrive
		for _, l := range r.links {
			l.deliver()
		}
		settle(0)
		r.free("a")
	})
}

// TestEndedContextLeavesNothing checks that nothing remains whenever the caller's context ends, and
// that the cleanup does not affect a later attempt with the same lease ID.
func TestEndedContextLeavesNothing(t *testing.T) {
	for ms := range 35 {
		for _, again := range []bool{false, true} {
			bubble(t, 3, func(r *rig) {
				for i, l := range r.links {
					l.slow(time.Duration(10+5*i) * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(r.Context(), time.Duration(ms)*time.Millisecond+time.Microsecond)
				defer cancel()
				req := ask("a")
				reply, err := r.Acquire(ctx, req)
				switch {
				case err == nil && reply.Outcome == driver.Granted:
					r.mustRelease(held{AcquireRequest: req})
				case !errors.Is(err, context.DeadlineExceeded):
					r.Fatalf("after %d ms: %+v, %v", ms, reply, err)
				case again:
					h := r.grant(req)
					settle(time.Second)
					if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
						r.Errorf("after %d ms: members have %v, want %d", ms, got, h.token)
					}
					r.mustRelease(h)
				}
				settle(time.Second)
				r.free("a")
			})
		}
	}
}

// TestTooLate checks that a grant is refused if the lease may have expired when the answers arrive.
func TestTooLate(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		for _, l := range r.links {
			l.slow(45 * time.Millisecond)
		}
		req := ask("a")
		req.TTL = 45 * time.Millisecond
		r.fails(req, driver.ErrUnavailable)
		req = ask("a")
		req.TTL = 60 * time.Millisecond
		h := r.grant(req)
		h.TTL = 40 * time.Millisecond
		if err := r.extend(h); err == nil || isLost(err) {
			r.Errorf("Extend that was answered after its TTL: %v, want an unknown outcome", err)
		}
	})
}

// TestTooLateLeavesNothing checks that such a grant is withdrawn at once.
func TestTooLateLeavesNothing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := newRigWith(t, stores(t, 3), &quorumlock.Options{Timeout: 10 * time.Second})
		req := ask("a")
		req.TTL = 4 * time.Second
		for _, l := range r.links {
			l.back = 3970 * time.Millisecond
		}
		r.fails(req, driver.ErrUnavailable)
		settle(0)
		if got := r.holders(held{AcquireRequest: req}); !slices.Equal(got, []uint64{0, 0, 0}) {
			r.Errorf("members have %v", got)
		}
	})
}

// TestTooFarAway checks the error for a round trip so long that tokens are too old when they
// arrive.
func TestTooFarAway(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := newRigWith(t, stores(t, 3), &quorumlock.Options{Timeout: 10 * time.Second})
		for _, l := range r.links {
			l.slow(3 * time.Second)
		}
		req := ask("a")
		req.TTL = time.Minute
		if err := r.fails(req, quorumlock.ErrNoQuorum); !strings.Contains(err.Error(), "token") {
			t.Errorf("error %q does not say why", err)
		}
	})
}

// TestExtendWithoutMajority checks that the outcome is unknown unless no member was reached.
func TestExtendWithoutMajority(t *testing.T) {
	for what, state := range map[string]linkState{"down": down, "silent": silent, "deaf": deaf} {
		bubble(t, 3, func(r *rig) {
			h := r.take("a")
			settle(0) // the third member has accepted it, too
			r.links[0].set(state)
			r.links[1].set(state)
			start := time.Now()
			err := r.extend(h)
			if err == nil || isLost(err) || errors.Is(err, driver.ErrUnavailable) {
				r.Errorf("%s: Extend: %v, want an unknown outcome: one member did it", what, err)
			}
			if took := time.Since(start); took > ttl/10 {
				r.Errorf("%s: Extend took %s, want %s", what, took, ttl/10)
			}
			r.links[2].set(down)
			if err := r.extend(h); errors.Is(err, quorumlock.ErrNoQuorum) != (state == down) {
				r.Errorf("%s: Extend that no member carried out: %v", what, err)
			}
			for _, l := range r.links {
				l.set(up)
			}
			if err := r.extend(h); err != nil {
				r.Errorf("Extend when the members are back: %v", err)
			}
		})
	}
}

// TestPermanentErrorsShow checks that the quorum returns the members' error if all of them return
// the same, and ErrNoQuorum if only some do.
func TestPermanentErrorsShow(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		for i := range 2 {
			shared := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute, Mode: lockinfo.Permits(1, 2)}
			if reply, err := r.stores[i].Engine().Acquire(r.Context(), shared); err != nil || reply.Outcome != driver.Granted {
				r.Fatalf("%+v, %v", reply, err)
			}
			if i == 0 {
				r.mustRelease(r.take("a"))
				settle(time.Second)
			}
		}
		err := r.fails(ask("a"), driver.ErrKindMismatch)
		if errors.Is(err, driver.ErrUnavailable) {
			r.Errorf("error %v, want a kind mismatch only", err)
		}
		settle(time.Second)
	})
}

// TestDeadMemberCostsBoundedMemory checks that requests for a dead member are merged by lease, and
// dropped in the end.
func TestDeadMemberCostsBoundedMemory(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(silent)
		r.take("a")
		waiter := ask("a")
		for range 50 {
			r.outcome(waiter, driver.Held)
			settle(100 * time.Millisecond)
		}
		for i := range 50 {
			r.mustRelease(r.take(fmt.Sprint("name ", i)))
		}
		settle(5 * time.Second)
		if _, _, waiting := r.Remembered(); waiting > 60 {
			r.Errorf("%d withdrawals wait for the dead member, want one for each lease", waiting)
		}
		settle(10 * time.Minute)
		r.mustRelease(r.take("b"))
		settle(0)
		leases, counters, waiting := r.Remembered()
		if leases > 1 || counters > 1 || waiting > 1 {
			r.Errorf("%d leases, %d counters, %d withdrawals are remembered after all has ended", leases, counters, waiting)
		}
	})
}

// TestCloseIsSoon checks that Close waits only briefly for a silent member.
func TestCloseIsSoon(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.links[2].set(silent)
		r.mustRelease(h)
		start := time.Now()
		if err := r.Close(); err != nil {
			r.Error(err)
		}
		if took := time.Since(start); took > 250*time.Millisecond {
			r.Errorf("Close took %s", took)
		}
		r.fails(ask("a"), driver.ErrClosed)
	})
}

// TestCloseCleansUp checks that no proposal of a failed attempt remains, at members that answer,
// when Close returns.
func TestCloseCleansUp(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		other := r.another()
		other.links[0].set(down)
		h := other.take("a") // on members 2 and 3
		for _, l := range r.links {
			l.slow(20 * time.Millisecond)
		}
		r.outcome(ask("a"), driver.Held)
		if err := r.Close(); err != nil {
			r.Error(err)
		}
		if got := r.holders(h); got[0] != 0 {
			r.Errorf("member 1 has %d after Close", got[0])
		}
	})
}
