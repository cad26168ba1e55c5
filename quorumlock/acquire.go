package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// maxRaises and maxPresses bound the rounds of one acquire, and pressPause is
// the first pause before the same token is proposed again. It doubles: the
// others have an eighth of a second to withdraw, each of them from each member
// one lock after the other.
const (
	maxRaises  = 4
	maxPresses = 7
	pressPause = time.Millisecond
)

// Acquire implements driver.Engine. It fails with ErrNoQuorum if fewer than a
// majority of the members take part, and with driver.ErrInvalid if the TTL is
// longer than MaxTTL.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if req.MinToken > driver.MaxToken-4 {
		return driver.AcquireReply{}, errMinToken(req.MinToken)
	}
	if err := e.enter(ctx); err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.running.Done()
	en, err := e.ledger.take(ctx, req.LeaseID, req.TTL)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	defer e.ledger.leave(en, req.TTL)
	req.Holder.Labels = maps.Clone(req.Holder.Labels) // it is used after the caller has an answer
	lease, latest := e.ledger.read(req.LeaseID)
	if lease.token != 0 {
		// INVARIANT I6: a repeat gets the token of the first time.
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

// run makes rounds until one is decisive.
func (a *attempt) run(ctx context.Context) (driver.AcquireReply, error) {
	a.propose(a.ledger.guess(a.req.Name, max(a.req.MinToken, a.present.token)+1))
	raises, presses := 0, 0
	for {
		v, err := a.await(ctx)
		switch {
		case err != nil:
		case v == won:
			return a.granted(a.present.token)
		case v == ours:
			return a.granted(a.ballot.tally().ownToken)
		case v == raise && raises < maxRaises:
			raises++
			if err = a.raise(); err == nil {
				continue
			}
		case v == raise:
			err = fmt.Errorf("%w agrees on a token, in %d rounds: they are too busy with the name, or too far away", ErrNoQuorum, raises)
		case v == press && presses < maxPresses:
			if err = a.pause(ctx, pressPause<<presses); err == nil {
				presses++
				a.proposeAgain()
				continue
			}
		case v == giveWay && !a.gaveWay:
			a.giveWay()
			continue
		case v == unreachable:
			err = a.ballot.failure()
		case v == ambiguous:
			err = fmt.Errorf("%w: an earlier request for this lease may have been granted by members that do not answer", ErrNoQuorum)
		}
		a.abandon()
		switch {
		case errors.Is(err, errSpent):
			return driver.AcquireReply{Outcome: driver.Spent}, nil
		case err != nil:
			return driver.AcquireReply{}, err
		case v == cancelled:
			return driver.AcquireReply{Outcome: driver.Cancelled}, nil
		}
		return driver.AcquireReply{Outcome: driver.Held, Blocker: a.ballot.blocker()}, nil
	}
}

// granted answers with a lease that a majority has, unless it may be over: the
// members count the TTL from after the attempt began.
func (a *attempt) granted(token uint64) (driver.AcquireReply, error) {
	if took := time.Since(a.began); tooLate(took, a.req.TTL) {
		a.abandon()
		return driver.AcquireReply{}, fmt.Errorf("%w: its members answered after %s, too late for a TTL of %s",
			driver.ErrUnavailable, took.Round(time.Millisecond), a.req.TTL)
	}
	t := tenure{token: token, lead: a.present.lead, ttl: a.req.TTL, holder: a.req.Holder}
	if token != a.present.token {
		t.lead = 0
		a.abandonFresh()
	}
	a.ledger.grant(a.req.LeaseID, t)
	return driver.AcquireReply{Outcome: driver.Granted, Token: token}, nil
}

// tooLate reports whether a lease of ttl, asked for so long ago, may be over.
// INVARIANT I3: the margin is that of a holder's deadline.
func tooLate(took, ttl time.Duration) bool { return took >= ttl-ttl/100-2*time.Millisecond }
