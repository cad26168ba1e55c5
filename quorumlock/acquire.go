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
	// A proposal must have a greater token than the previous one. So the second of two requests for
	// one lease ID waits for the first.
	en, err := e.ledger.take(ctx, req.LeaseID, req.TTL)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.ledger.leave(en, req.TTL)
	req.Holder.Labels = maps.Clone(req.Holder.Labels) // it is used after the caller has its reply
	lease, latest := e.ledger.read(req.LeaseID)
	if req.First && max(lease.token, latest.token) != 0 {
		return driver.AcquireReply{Outcome: driver.Repeated}, nil
	}
	if lease.token != 0 {
		// If the ledger does not know of an earlier grant, because another engine sent the request
		// or its replies were lost, the members reply VoteOwn.
		if reply, err := e.again(ctx, req, lease.token); !isLost(err) {
			return reply, err
		}
	}
	return newAttempt(e, req, en, latest).run(ctx)
}

// again serves a repeat for a lease with this token that a majority seems to have. INVARIANT I6:
// the repeat gets the token of the first request. The extension confirms the lease, so that no
// engine that has proposed it, and may not know of its grant, withdraws it. The error is
// driver.ErrLost if a majority certainly does not have the lease.
func (e *engine) again(ctx context.Context, req driver.AcquireRequest, token uint64) (driver.AcquireReply, error) {
	// No member confirms a lease with another token, which may be being withdrawn.
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
