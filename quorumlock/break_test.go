package quorumlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

func (l *link) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	r := over(ctx, l, "Break", func(ctx context.Context) (r reply[[]lockinfo.Broken]) {
		r.value, r.err = l.Member.(driver.Breaker).Break(ctx, req)
		return r
	}, fails)
	return r.value, r.err
}

func (l *link) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	r := over(ctx, l, "Breaks", func(ctx context.Context) (r reply[[]lockinfo.Broken]) {
		r.value, r.err = l.Member.(driver.Breaker).Breaks(ctx, name)
		return r
	}, fails)
	return r.value, r.err
}

func (l *link) OnLoss(told func(driver.Loss)) (stop func()) {
	return l.Member.(driver.LossTeller).OnLoss(told)
}

func breakOf(h held) driver.BreakRequest {
	return driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: h.Name, Token: h.token, Author: "ada", Reason: "stuck"}
}

// mustBreak breaks h and no other lease.
func (r *rig) mustBreak(h held) {
	r.Helper()
	broken, err := r.Break(r.Context(), breakOf(h))
	if err != nil || len(broken) != 1 || broken[0].LeaseID != h.LeaseID {
		r.Fatalf("Break = %+v, %v; want the lease with token %d", broken, err, h.token)
	}
}

// TestBreakWithSilentMember checks that a lease ends when a majority has broken it: a member that
// still has it neither revives it nor blocks the next holder.
func TestBreakWithSilentMember(t *testing.T) {
	for _, state := range []linkState{down, silent, reset, deaf} {
		bubble(t, 3, func(r *rig) {
			h := r.take("a")
			settle(time.Second)
			admin := r.another()
			admin.links[0].set(state)
			admin.mustBreak(h)
			if err := r.extend(h); !errors.Is(err, driver.ErrLost) {
				r.Errorf("state %d: Extend = %v, want ErrLost", state, err)
			}
			settle(time.Second) // for repairs
			if n := count(r.holders(h), h.token); n > 1 {
				r.Errorf("state %d: %d members have the lease that was broken", state, n)
			}
			next := admin.take("a")
			if next.token <= h.token {
				r.Errorf("state %d: token %d after %d", state, next.token, h.token)
			}
			if err := r.extend(h); !errors.Is(err, driver.ErrLost) {
				r.Errorf("state %d: Extend beside the successor = %v, want ErrLost", state, err)
			}
			admin.mustRelease(next)
		})
	}
}

// TestBrokenIsNotRepaired checks that a renewal sent before the break repairs nothing after it, not
// even at a member that never had the lease.
func TestBrokenIsNotRepaired(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a")
		settle(time.Second)
		r.another().mustBreak(h)
		settle(time.Second)
		repair := driver.RenewRequest{
			Name: "a", LeaseID: h.LeaseID, TTL: ttl, Repair: true, Token: h.token, Quarantine: time.Minute,
		}
		for i, s := range r.stores {
			if err := s.Renew(r.Context(), []driver.RenewRequest{repair})[0].Err; !errors.Is(err, driver.ErrLost) {
				r.Errorf("member %d repairs: %v, want ErrLost", i, err)
			}
		}
		r.free("a")
	})
}

// TestBreakWithoutMajority checks that the outcome is unknown if too few members answer, and that
// nothing changes if too few are reached.
func TestBreakWithoutMajority(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(time.Second)
		r.links[0].set(down)
		r.links[1].set(down)
		if _, err := r.Break(r.Context(), breakOf(h)); !errors.Is(err, quorumlock.ErrNoQuorum) {
			r.Errorf("two members down: %v, want ErrNoQuorum", err)
		}
		r.links[0].set(up)
		r.links[1].set(up)
		if n := count(r.holders(h), h.token); n != 3 {
			r.Errorf("%d members have the lease, want 3", n)
		}
		for _, l := range r.links[:2] {
			l.breaks("Break", errReset)
		}
		req := breakOf(h)
		_, err := r.Break(r.Context(), req)
		if err == nil || errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrLost) {
			r.Errorf("one of three members answered: %v, want an unknown outcome", err)
		}
		broken, err := r.Break(r.Context(), req)
		if err != nil || len(broken) != 1 {
			r.Errorf("the repeat: %+v, %v; want the lease", broken, err)
		}
		r.free("a")
	})
}

// TestBreakOfWrongTokenJamsNothing checks that a token without a lease, such as a mistyped one,
// does not raise the members' counters.
func TestBreakOfWrongTokenJamsNothing(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		wrong := h
		wrong.token += uint64((driver.MaxTokenLead).Microseconds())
		if broken, err := r.Break(r.Context(), breakOf(wrong)); err != nil || len(broken) != 0 {
			r.Errorf("Break = %+v, %v; want nothing", broken, err)
		}
		r.mustRelease(h)
		next := r.take("a")
		if ahead := time.Duration(next.token-h.token) * time.Microsecond; ahead > time.Minute {
			r.Errorf("the next token is %s ahead", ahead)
		}
		r.mustRelease(next)
	})
}

// TestLossNeedsMajority checks that the client only verifies the lease when a single member reports
// its end.
func TestLossNeedsMajority(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		var losses []driver.Loss
		defer r.OnLoss(func(l driver.Loss) { losses = append(losses, l) })()
		h := r.take("a")
		settle(time.Second)
		for i, want := range []lockinfo.LeaseID{"", h.LeaseID} {
			if _, err := r.stores[i].Break(r.Context(), breakOf(h)); err != nil {
				r.Fatal(err)
			}
			if len(losses) != i+1 || losses[i].Name != "a" || losses[i].LeaseID != want {
				r.Fatalf("after %d of 3 members: told %+v, want %q", i+1, losses, want)
			}
		}
		var broken *lockinfo.BrokenError
		if !errors.As(losses[1].Err, &broken) || broken.Author != "ada" {
			r.Errorf("error %v, want that ada broke it", losses[1].Err)
		}
	})
}

// TestMemberThatCannotBreak checks that no member gets a Break unless all of them support it.
func TestMemberThatCannotBreak(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var mixed []driver.Member
		for i, s := range stores(t, 3) {
			if i == 1 {
				mixed = append(mixed, plain{s})
				continue
			}
			mixed = append(mixed, s)
		}
		e := open(t, mixed, nil)
		defer e.Close()
		if c := e.Capabilities(); c.Break || c.Losses || c.List {
			t.Errorf("capabilities %+v", c)
		}
		req := ask("a")
		reply, err := e.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Break(t.Context(), breakOf(held{req, reply.Token})); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("Break: %v, want ErrUnsupported", err)
		}
		settle(time.Second) // the first member may not belong to the majority that answered
		if lock, err := mixed[0].(*mem.Member).Inspect(t.Context(), "a"); err != nil || len(lock.Holders) != 1 {
			t.Errorf("after it: %+v, %v", lock, err)
		}
	})
}

// count returns how many of tokens are token.
func count(tokens []uint64, token uint64) (n int) {
	for _, t := range tokens {
		if t == token {
			n++
		}
	}
	return n
}
