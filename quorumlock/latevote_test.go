package quorumlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// A voter is a member that only receives tokens below a limit, and may answer late. It receives all
// other requests only if the test allows them.
type voter struct {
	*mem.Member
	below uint64
	late  time.Duration
	all   bool
	asked atomic.Int32
}

func (v *voter) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	v.asked.Add(1)
	if req.Token >= v.below && !v.all {
		<-ctx.Done()
		return driver.ProposeReply{}, ctx.Err()
	}
	reply, err := v.Member.Propose(ctx, req)
	if req.Token < v.below {
		time.Sleep(v.late)
	}
	return reply, err
}

// TestLateVoteCountsForItsToken checks that an acceptance does not count for a greater token
// proposed before it arrived. Two of three members refuse the first token. The third accepts it,
// but its reply is late. Then only one member receives the second token: that is not a majority.
// INVARIANT I2.
func TestLateVoteCountsForItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lifted := uint64(time.Now().Add(time.Minute).UnixMicro())
		a, b, c := &voter{below: lifted}, &voter{below: lifted, late: 20 * time.Millisecond}, &voter{below: lifted, all: true}
		for _, v := range []*voter{a, b, c} {
			v.Member = mem.NewMember()
			if err := v.Admit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v == b {
				continue
			}
			_, err := v.Withdraw(t.Context(), driver.WithdrawRequest{
				Name: "a", LeaseID: lockinfo.NewLeaseID(), Proposer: driver.NewProposer(), Token: lifted, Lead: time.Hour,
			})
			if !errors.Is(err, driver.ErrLost) {
				t.Fatalf("Withdraw of what was not proposed: %v", err)
			}
		}
		engine, err := quorumlock.New([]driver.Member{a, b, c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		reply, err := engine.Acquire(t.Context(), driver.AcquireRequest{
			Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: 10 * time.Second,
		})
		if !errors.Is(err, quorumlock.ErrNoQuorum) {
			t.Errorf("Acquire: %+v, %v; want ErrNoQuorum: only one member has a lease with the token %d", reply, err, reply.Token)
		}
		for _, v := range []*voter{a, b, c} {
			if n := v.asked.Load(); n != 2 {
				t.Errorf("%d proposals to a member, want two rounds", n)
			}
		}
	})
}
