package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/holdfast-locks/holdfast/driver"
)

// Acquire implements driver.Engine. It fails with ErrNoQuorum if fewer than a
// majority of the members take part, and with driver.ErrInvalid if the TTL is
// longer than MaxTTL.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
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
	// Two requests of one lease ID at once could not both propose greater tokens than
	// the other: the second waits for its turn.
	en, err := e.ledger.take(ctx, req.LeaseID, req.TTL)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.ledger.leave(en, req.TTL)
	req.Holder.Labels = maps.Clone(req.Holder.Labels) // it is used after the caller has an answer
	lease, latest := e.ledger.read(req.LeaseID)
	if lease.token != 0 {
		// INVARIANT I6: a repeat gets the token of the first time. If we do not know
		// of that time, because another engine sent it, the members tell: VoteOwn.
		err := e.Extend(ctx, []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL}})[0]
		switch {
		case err == nil:
			lease, _ = e.ledger.read(req.LeaseID)
			return driver.AcquireReply{Outcome: driver.Granted, Token: lease.token}, nil
		case !errors.Is(err, driver.ErrLost):
			return driver.AcquireReply{}, err
		}
	}
	return newAttempt(e, req, en, latest).run(ctx)
}

func errMinToken(token uint64) error {
	return fmt.Errorf("%w MinToken %d: it is more than %s ahead of the members' clocks", driver.ErrInvalid, token, driver.MaxTokenLead)
}
