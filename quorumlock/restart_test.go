package quorumlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// quarantine is a little longer than that of the default MaxTTL.
const quarantine = 5*time.Minute + 10*time.Second

// TestEmptyRestart checks that a member that forgot a lease does not help to grant it to another
// client. Without the quarantine, the second client would hold the lock on members 1 and 3.
func TestEmptyRestart(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		other := r.another()
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(0)
		r.stores[0].Restart()
		other.links[1].set(down)
		other.fails(ask("a"), quorumlock.ErrNoQuorum)
		if err := r.extend(h); err == nil {
			r.Error("Extend with one member of three that has the lease")
		}
		r.links[2].set(up)
		for start := time.Now(); time.Since(start) < quarantine-20*time.Second; settle(ttl / 3) {
			if reply, err := other.Acquire(r.Context(), ask("a")); !errors.Is(err, quorumlock.ErrNoQuorum) {
				r.Fatalf("after %s of the quarantine: %+v, %v", time.Since(start), reply, err)
			}
		}
		settle(20 * time.Second)
		if next := other.take("a"); next.token <= h.token {
			r.Errorf("token %d after %d was forgotten", next.token, h.token)
		}
	})
}

// TestTokensGrowOverLoss checks that tokens grow although the members lose all their data, one
// after the other.
func TestTokensGrowOverLoss(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		var last uint64
		grow := func() {
			r.Helper()
			for range 3 {
				h := r.take("a")
				if h.token <= last {
					r.Errorf("token %d after %d", h.token, last)
				}
				last = h.token
				r.mustRelease(h)
				settle(0) // at the third member, too
			}
		}
		for range 3 {
			for _, s := range r.stores {
				grow()
				s.Restart()
				grow()
				settle(quarantine)
			}
			for _, s := range r.stores {
				s.Restart()
			}
			r.fails(ask("a"), quorumlock.ErrNoQuorum)
			settle(quarantine)
		}
	})
}

// TestRepair checks that a lease that is kept alive survives the loss of all members' data, one
// after the other, if each was repaired before the next loss.
func TestRepair(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		taken := time.Now()
		h := r.take("a")
		alive := func(d time.Duration) {
			r.Helper()
			for start := time.Now(); time.Since(start) < d; settle(ttl / 3) {
				if err := r.extend(h); err != nil {
					r.Fatal(err)
				}
			}
		}
		for i, s := range r.stores {
			alive(time.Minute)
			s.Restart()
			alive(quarantine - 20*time.Second)
			if got := r.holders(h); got[i] != 0 {
				r.Errorf("member %d has the lease although it is in quarantine", i+1)
			}
			alive(30 * time.Second)
			if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
				r.Errorf("members have %v after member %d was repaired, want %d", got, i+1, h.token)
			}
		}
		if lock, err := r.stores[0].Inspect(r.Context(), "a"); err != nil || lock.Holders[0].Holder.Host != "web-3" {
			r.Errorf("a repaired lease is %+v, %v", lock.Holders, err)
		}
		// The time of the grant remains, and not that of the repair.
		held := time.Since(taken)
		for i, s := range append([]inspector{r}, inspector(r.stores[0]), r.stores[1], r.stores[2]) {
			lock, err := s.Inspect(r.Context(), "a")
			if err != nil || len(lock.Holders) != 1 || lock.Holders[0].Since > held || lock.Holders[0].Since < held-time.Millisecond {
				r.Errorf("%d: %+v, %v; want it held for %s", i, lock.Holders, err, held)
			}
		}
		if way := r.outcome(ask("a"), driver.Held); way.Since > held || way.Since < held-time.Millisecond {
			r.Errorf("a refusal says that it is held for %s, want %s", way.Since, held)
		}
		r.mustRelease(h)
	})
}

// An inspector is an engine, or a member.
type inspector interface {
	Inspect(ctx context.Context, name string) (lockinfo.LockState, error)
}

// TestSinceOfLongestMember checks that the quorum reports the holder and the time of the grant if
// one member knows them. A member that was repaired by an engine that did not acquire the lease
// knows neither.
func TestSinceOfLongestMember(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h, taken := r.take("a"), time.Now()
		settle(ttl / 3)
		other := r.another() // keeps the lease from now on
		for _, s := range []*mem.Member{r.stores[0], r.stores[0], r.stores[1]} {
			s.Restart()
			if err := s.Admit(r.Context()); err != nil {
				r.Fatal(err)
			}
			if err := other.extend(h); err != nil {
				r.Fatal(err)
			}
			settle(time.Second)
		}
		if lock, err := r.stores[0].Inspect(r.Context(), "a"); err != nil || len(lock.Holders) != 1 || lock.Holders[0].Since > 3*time.Second {
			r.Errorf("the member was not repaired: %+v, %v", lock.Holders, err)
		}
		held := time.Since(taken)
		lock, err := r.Inspect(r.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].Since != held || lock.Holders[0].Holder.Host != "web-3" {
			r.Errorf("%+v, %v; want web-3 for %s", lock.Holders, err, held)
		}
		r.links[1].set(down) // the first two answers decide a refusal: let the third member give one of them
		if way := r.outcome(ask("a"), driver.Held); way.Since != held || way.Holder.Host != "web-3" {
			r.Errorf("a refusal says that it is held by %s for %s, want web-3 for %s", way.Holder, way.Since, held)
		}
	})
}

// TestRepairsUnreached checks that a member that could not be reached at first gets the lease
// later, from any engine that extends it.
func TestRepairsUnreached(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[1].set(down)
		req := ask("a")
		req.Holder.Labels = map[string]string{"team": "a"}
		h := r.grant(req)
		req.Holder.Labels["team"] = "changed after Acquire"
		settle(0)
		r.links[1].set(up)
		if err := r.extend(h); err != nil {
			r.Fatal(err)
		}
		settle(0)
		lock, err := r.stores[1].Inspect(r.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].Holder.Labels["team"] != "a" {
			r.Errorf("repaired: %+v, %v; want the holder as given to Acquire", lock.Holders, err)
		}
		r.stores[1].Restart()
		if err := r.stores[1].Admit(r.Context()); err != nil {
			r.Fatal(err)
		}
		other := r.another()
		if err := other.extend(h); err != nil { // the engine learns the token
			r.Fatal(err)
		}
		if err := other.extend(h); err != nil {
			r.Fatal(err)
		}
		settle(0)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
			r.Errorf("members have %v, want %d", got, h.token)
		}
	})
}

// TestRepeatRepairs checks that a repeat is an extension, and gives no member another token.
func TestRepeatRepairs(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a")
		settle(0)
		r.links[2].set(up)
		settle(time.Second)
		if again := r.grant(h.AcquireRequest); again.token != h.token {
			r.Errorf("token of the repeat %d, want %d", again.token, h.token)
		}
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
			r.Errorf("members have %v, want %d", got, h.token)
		}
	})
}

// TestInspectCountsMajorities checks that Inspect does not report a lease that only a minority has.
func TestInspectCountsMajorities(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		half := ask("a")
		if reply, err := r.stores[1].Engine().Acquire(r.Context(), half); err != nil || reply.Outcome != driver.Granted {
			r.Fatalf("%+v, %v", reply, err)
		}
		if lock, err := r.Inspect(r.Context(), "a"); err != nil || len(lock.Holders) != 0 {
			r.Errorf("Inspect: %+v, %v; want no holder", lock, err)
		}
		direct := open(r, members(r.stores), nil) // links do not list
		defer direct.Close()
		for lock, err := range direct.List(r.Context(), "") {
			r.Errorf("List: %+v, %v; want nothing", lock, err)
		}
		h := r.take("a")
		lock, err := r.Inspect(r.Context(), "a")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != h.LeaseID || lock.LastToken != h.token {
			r.Errorf("Inspect: %+v, %v; want the lease of the majority", lock, err)
		}
		var names []string
		for lock, err := range direct.List(r.Context(), "") {
			if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != h.LeaseID {
				r.Errorf("List: %+v, %v", lock, err)
			}
			names = append(names, lock.Name)
		}
		if !slices.Equal(names, []string{"a"}) {
			r.Errorf("List: %q", names)
		}
		if reply := r.stores[0].Renew(r.Context(), []driver.RenewRequest{{Name: "a", LeaseID: h.LeaseID, TTL: time.Hour}})[0]; reply.Err != nil {
			r.Fatal(reply.Err)
		}
		if lock, err := r.Inspect(r.Context(), "a"); err != nil || lock.Holders[0].ExpiresIn > ttl {
			r.Errorf("Inspect: %+v, %v; want the expiry of the majority", lock, err)
		}
		r.links[0].set(down)
		if lock, err := r.Inspect(r.Context(), "a"); !errors.Is(err, quorumlock.ErrNoQuorum) {
			r.Errorf("Inspect: %+v, %v; want ErrNoQuorum: the two that answer do not agree", lock, err)
		}
	})
}

// TestNoRepairWithoutMajority checks that a lease that may be lost is not repaired.
func TestNoRepairWithoutMajority(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		r.links[2].set(down)
		h := r.take("a") // on members 1 and 2
		settle(0)
		r.links[2].set(up)
		r.links[1].set(silent)
		if err := r.extend(h); err == nil || isLost(err) {
			r.Errorf("Extend: %v, want an unknown outcome", err)
		}
		settle(5 * time.Second)
		if got := r.holders(h); got[2] != 0 {
			r.Errorf("members have %v, want nothing at member 3", got)
		}
	})
}

// TestLossOfMajority checks that a lease lost by a majority is lost.
func TestLossOfMajority(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		r.stores[0].Restart()
		r.stores[1].Restart()
		if err := r.extend(h); !isLost(err) {
			r.Errorf("Extend: %v, want ErrLost", err)
		}
		if err := r.release(h); !isLost(err) {
			r.Errorf("Release: %v, want ErrLost", err)
		}
		settle(time.Second)
		r.free("a")
	})
}

// TestStaleHolderIsNotRepaired checks that an extension does not revive a lease after another
// client held the lock, whichever members forgot it.
func TestStaleHolderIsNotRepaired(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		stale := r.take("a")
		settle(ttl)
		other := r.another()
		other.links[0].set(down)
		next := other.take("a") // on members 2 and 3
		for range 3 {
			if err := r.extend(stale); !isLost(err) {
				r.Errorf("Extend by an earlier holder: %v", err)
			}
			settle(time.Second)
		}
		if got := r.holders(next); got[1] != next.token || got[2] != next.token {
			r.Errorf("members have %v", got)
		}
		other.mustRelease(next)
		if err := r.extend(stale); !isLost(err) {
			r.Errorf("Extend by an earlier holder: %v", err)
		}
		settle(time.Second)
		r.free("a")
	})
}

// TestMemberWithWrongClock checks that tokens do not follow a member whose clock is far off.
func TestMemberWithWrongClock(t *testing.T) {
	for _, off := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		bubble(t, 3, func(r *rig) {
			r.links[0].Member = wrongClock{r.stores[0], off}
			var last uint64
			for range 3 {
				for range 3 {
					h := r.take("a")
					if ahead := int64(h.token) - time.Now().UnixMicro(); ahead < -1e6 || ahead > 1e6 || h.token <= last {
						r.Errorf("token %d after %d, %d us ahead of the right clocks", h.token, last, ahead)
					}
					last = h.token
					if err := r.extend(h); err != nil {
						r.Error(err)
					}
					r.mustRelease(h)
					settle(0) // at the third member, too, whose vote is needed
				}
				settle(time.Minute)
			}
		})
	}
}

// TestWrongClockInCompany checks that a token is withdrawn if it was accepted only by a member
// whose clock is as wrong as the client's.
func TestWrongClockInCompany(t *testing.T) {
	const off = 2 * time.Minute // a token could follow it
	bubble(t, 3, func(r *rig) {
		r.links[0].Member = wrongClock{r.stores[0], off}
		r.links[1].slow(10 * time.Millisecond)
		r.links[2].slow(10 * time.Millisecond)
		r.SetClock(off)
		h := r.take("a")
		if ahead := int64(h.token) - time.Now().UnixMicro(); ahead > 1e6 {
			r.Errorf("token %d us ahead of the right clocks", ahead)
		}
		settle(time.Second)
		if got := r.holders(h); !slices.Equal(got, []uint64{0, h.token, h.token}) {
			r.Errorf("members have %v, want %d at two", got, h.token)
		}
	})
}
