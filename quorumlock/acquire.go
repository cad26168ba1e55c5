package quorumlock

import (
	"context"
	"fmt"
	"maps"

	"github.com/holdfast-locks/holdfast/driver"
)

// Acquire implements driver.Engine. It fails with ErrNoQuorum if fewer than a
// majority of the members take part, and with driver.ErrInvalid if the TTL is
// longer than MaxTTL.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if req.MinToken > driver.MaxToken-4 { // there must be an even token above it
		return driver.AcquireReply{}, errMinToken(req.MinToken)
	}
	if err := e.enter(ctx); err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.running.Done()
	// Each proposal must have a greater token than the one before. So the second of two
	// requests for one lease ID waits for the first.
	en, err := e.ledger.take(ctx, req.LeaseID, req.TTL)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.ledger.leave(en, req.TTL)
	req.Holder.Labels = maps.Clone(req.Holder.Labels) // it is used after the caller has an answer
	lease, latest := e.ledger.read(req.LeaseID)
	if req.First && max(lease.token, latest.token) != 0 {
		return driver.AcquireReply{Outcome: driver.Repeated}, nil
	}
	if lease.token != 0 {
		// If we do not know of the first time, because another engine sent it, or because
		// its answers were lost, the members know: VoteOwn.
		if reply, err := e.again(ctx, req, lease.token); !isLost(err) {
			return reply, err
		}
	}
	return newAttempt(e, req, en, latest).run(ctx)
}

// again answers a repeat for a lease with this token that a majority seems to have.
// INVARIANT I6: it gets the token of the first time. The extension confirms the lease: so
// no engine that has proposed it, and may not know of its grant, takes it back. The
// error is driver.ErrLost if a majority certainly does not have it.
func (e *engine) again(ctx context.Context, req driver.AcquireRequest, token uint64) (driver.AcquireReply, error) {
	// No member confirms a lease with another token, which may be withdrawn just now.
	x := e.newExtension([]driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, Token: token, TTL: req.TTL}})
	for i := range x.leases {
		x.leases[i].known.holder = req.Holder
	}
	x.run(ctx)
	if err := x.errs[0]; err != nil {
		return driver.AcquireReply{}, err
	}
	return driver.AcquireReply{Outcome: driver.Granted, Token: token}, nil
}

func errMinToken(token uint64) error {
	return fmt.Errorf("%w MinToken %d: it is more than %s ahead of the members' clocks", driver.ErrInvalid, token, driver.MaxTokenLead)
}
