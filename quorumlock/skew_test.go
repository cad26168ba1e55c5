package quorumlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestSkewAndLossOfMemory checks that tokens grow over the loss of a member's memory, however far
// the members' clocks are apart. Two of three are ten minutes behind. Neither of them may accept a
// token from the third's clock: it would forget that token, and grant again before its clock has
// passed it. INVARIANT I2.
func TestSkewAndLossOfMemory(t *testing.T) {
	for _, behind := range []time.Duration{time.Second, 2 * time.Minute, 4 * time.Minute, 10 * time.Minute, 50 * time.Minute} {
		t.Run(behind.String(), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				some := stores(t, 3)
				var last uint64
				granted := 0
				try := func(with ...int) {
					t.Helper()
					r := newRig(t, some) // a client without memory
					r.links[1].Member = shifted{plain{some[1]}, behind}
					r.links[2].Member = shifted{plain{some[2]}, behind}
					for _, l := range r.links {
						l.set(down)
					}
					for _, i := range with {
						r.links[i].set(up)
					}
					for range 3 { // the first attempt may only correct the clock
						settle(100 * time.Millisecond)
						req := ask("a")
						reply, err := r.Acquire(t.Context(), req)
						if err != nil || reply.Outcome != driver.Granted {
							continue
						}
						if granted++; reply.Token <= last {
							t.Errorf("members %v: token %d after %d, %s less", with, reply.Token, last,
								time.Duration(last-reply.Token)*time.Microsecond)
						}
						last = max(last, reply.Token)
						r.mustRelease(held{req, reply.Token})
					}
				}
				try(1, 2)
				try(0, 1)
				some[1].Restart()
				try(1, 2) // the quarantine begins
				settle(5*time.Minute + 10*time.Second)
				try(1, 2)
				try(0, 1, 2)
				if granted < 5 {
					t.Errorf("%d leases were granted: that tested nothing", granted)
				}
			})
		})
	}
}

// A shifted is a member whose clock is behind. Virtual time has one clock, so shifted changes the
// tokens instead.
type shifted struct {
	plain
	behind time.Duration
}

func (s shifted) there(token uint64) uint64 {
	if token == 0 {
		return 0
	}
	return token + uint64(s.behind.Microseconds())
}

func (s shifted) here(token uint64) uint64 {
	if token == 0 {
		return 0
	}
	return token - uint64(s.behind.Microseconds())
}

func (s shifted) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	req.Token, req.Replaces = s.there(req.Token), s.there(req.Replaces)
	reply, err := s.Member.Propose(ctx, req)
	reply.Token, reply.Counter, reply.Clock = s.here(reply.Token), s.here(reply.Counter), s.here(reply.Clock)
	return reply, err
}

func (s shifted) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	req.Token = s.there(req.Token)
	token, err := s.Member.Withdraw(ctx, req)
	return s.here(token), err
}

func (s shifted) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	reqs = slices.Clone(reqs)
	for i := range reqs {
		reqs[i].Token = s.there(reqs[i].Token)
	}
	replies := s.Member.Renew(ctx, reqs)
	for i := range replies {
		replies[i].Token = s.here(replies[i].Token)
	}
	return replies
}
