package quorumlock_test

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A wrongClock is a member that judges proposals by a wrong clock.
type wrongClock struct {
	*mem.Member
	off time.Duration
}

func (w wrongClock) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	clock := time.Now().Add(w.off)
	ahead := time.UnixMicro(int64(req.Token)).Sub(clock)
	// The store's own clock is right: it decides all but the part that depends on the clock.
	lead := req.Lead
	req.Lead = 1 << 62
	if ahead < -driver.MaxProposalLag || ahead > lead {
		req.Token = 2 // a token that is always refused, if not for another reason
	}
	reply, err := w.Member.Propose(ctx, req)
	reply.Clock = uint64(clock.UnixMicro())
	return reply, err
}
