package quorumlock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// contend makes one attempt with each engine at once, and returns which were granted the lock.
func contend(t *testing.T, rigs []*rig, name string) (granted []int, leases []held) {
	t.Helper()
	replies := make([]driver.AcquireReply, len(rigs))
	leases = make([]held, len(rigs))
	var wg sync.WaitGroup
	for i, r := range rigs {
		leases[i] = held{AcquireRequest: ask(name)}
		wg.Go(func() {
			reply, err := r.Acquire(t.Context(), leases[i].AcquireRequest)
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			replies[i] = reply
		})
	}
	wg.Wait()
	for i, reply := range replies {
		leases[i].token = reply.Token
		if reply.Outcome == driver.Granted {
			granted = append(granted, i)
		}
	}
	return granted, leases
}

// TestSplitVote lets each client reach another member first. One client is granted the lock soon,
// and the others leave no proposal.
func TestSplitVote(t *testing.T) {
	tests := []struct {
		members int
		first   [][]int // by client: the members that it reaches first
		gone    int     // member that is silent, counted from 1; 0 for none
	}{
		{3, [][]int{{0}, {1}, {2}}, 0},
		{3, [][]int{{2}, {1}, {0}}, 0},
		{3, [][]int{{1}, {2}}, 1}, // each reaches one of the two others first
		{3, [][]int{{0}, {1}}, 3},
		{5, [][]int{{0, 1}, {2, 3}, {4}}, 0},
		{5, [][]int{{4}, {3}, {2}, {1}, {0}}, 0},
		{5, [][]int{{1, 2}, {3, 4}}, 1},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.members, " members ", test.first, " gone ", test.gone), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				some := stores(t, test.members)
				var rigs []*rig
				for _, first := range test.first {
					r := newRig(t, some)
					for _, l := range r.links {
						l.slow(20 * time.Millisecond)
					}
					for _, i := range first {
						r.links[i].slow(10 * time.Millisecond)
					}
					if test.gone > 0 {
						r.links[test.gone-1].set(silent)
					}
					rigs = append(rigs, r)
				}
				start := time.Now()
				granted, leases := contend(t, rigs, "a")
				if len(granted) != 1 {
					t.Fatalf("clients %v were granted the lock, want one of them", granted)
				}
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("the vote was settled after %s", took)
				}
				settle(200 * time.Millisecond)
				winner := leases[granted[0]]
				for i, token := range rigs[0].holders(winner) {
					if token != winner.token && token != 0 {
						t.Errorf("member %d has another's lease", i+1)
					}
				}
				rigs[granted[0]].mustRelease(winner)
			})
		})
	}
}

// TestSplitVoteUnderLatency checks with random latencies, too, that one of many clients that try at
// once is granted the lock, nearly always at once.
func TestSplitVoteUnderLatency(t *testing.T) {
	const rounds = 200
	wins := 0
	for seed := range uint64(rounds) {
		virtual(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			some := stores(t, 3+2*random.IntN(2))
			var rigs []*rig
			for range 6 {
				r := newRig(t, some)
				for _, l := range r.links {
					l.slow(time.Duration(random.IntN(5000)) * time.Microsecond)
				}
				rigs = append(rigs, r)
			}
			granted, _ := contend(t, rigs, "a")
			if len(granted) > 1 {
				t.Errorf("seed %d: clients %v were granted the lock", seed, granted)
			}
			wins += len(granted)
		})
	}
	t.Logf("%d of %d votes had a winner", wins, rounds)
	if wins < rounds*95/100 {
		t.Errorf("%d of %d votes had a winner, want nearly all", wins, rounds)
	}
}

// TestOldHolderIsNoSplitVote checks that one lease on all members is not a split vote: clients are
// refused at once, and propose nothing more.
func TestOldHolderIsNoSplitVote(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		h := r.take("a")
		settle(0)
		for _, l := range r.links {
			l.slow(10 * time.Millisecond)
		}
		start := time.Now()
		way := r.outcome(ask("a"), driver.Held).Blocker
		if took := time.Since(start); took != 10*time.Millisecond {
			r.Errorf("the refusal took %s", took)
		}
		if way.Holder.Host != "web-3" || way.ExpiresIn > h.TTL || way.ExpiresIn < h.TTL-time.Second {
			r.Errorf("in the way: %+v", way)
		}
		settle(time.Second)
		if n := r.counts("Withdraw"); n[0]+n[1]+n[2] != 0 {
			r.Errorf("a refused attempt sent %v withdrawals", n)
		}
	})
}
