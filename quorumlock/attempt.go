package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// maxRaises and maxPresses bound the rounds of one acquire, and pressPause is
// the first pause before the same token is proposed again. It doubles: the
// others have an eighth of a second to withdraw, each of them from each member
// one lock after the other. A raise succeeds at once unless others are granted the
// name in between, and lift the counters: four in a row mean that this client is
// too far away to keep up.
const (
	maxRaises  = 4
	maxPresses = 7
	pressPause = time.Millisecond
)

// An attempt is one call of Acquire under way. Only its caller's goroutine
// uses it, until abandon hands it to another.
type attempt struct {
	*Engine
	req   driver.AcquireRequest
	entry *entry
	began time.Time

	ballot  ballot    // of the present round
	present proposal  // the token of the present round
	earlier uint64    // the greatest token that was proposed before and counts no longer
	inbox   chan vote // the answers of all rounds; it never blocks a sender
	awaited int       // answers that have not been received
	touched []bool    // members that may have accepted something
	gaveWay bool      // what was accepted has been withdrawn for the sake of others
}

// newAttempt returns an attempt whose proposals go on from latest, the last that
// was made for this lease ID.
func newAttempt(e *Engine, req driver.AcquireRequest, en *entry, latest proposal) *attempt {
	n := len(e.members)
	return &attempt{
		Engine: e, req: req, entry: en, began: time.Now(), present: latest,
		ballot:  ballot{quorum: e.quorum, minToken: req.MinToken, lead: e.lead(), answers: make([]answer, n)},
		inbox:   make(chan vote, n*(1+maxRaises+maxPresses)),
		touched: make([]bool, n),
	}
}

// run makes rounds until one is decisive.
//
//	won, ours                 granted
//	raise                     another round, with a greater token
//	press                     another round for the members in use, with the same
//	giveWay                   withdraw, and hear the rest of this round
//	inUse                     held
//	cancelled                 cancelled
//	unreachable, ambiguous    ErrNoQuorum
//
// Whatever ends it without a lease leaves nothing behind (INVARIANT I5).
func (a *attempt) run(ctx context.Context) (driver.AcquireReply, error) {
	a.propose(a.ledger.guess(a.req.Name, max(a.req.MinToken, a.present.token)+1))
	raises, presses := 0, 0
	for {
		v, err := a.await(ctx)
		switch {
		case err != nil: // the caller has gone, or the engine was closed
		case v == won:
			return a.granted(a.present.token)
		case v == ours:
			return a.granted(a.ballot.tally().ownToken)
		case v == raise && raises < maxRaises:
			// Counters or clocks were ahead of our guess; now we know them.
			raises++
			if err = a.raise(); err == nil {
				continue
			}
		case v == raise:
			err = fmt.Errorf("%w agrees on a token, in %d rounds: they are too busy with the name, or too far away", ErrNoQuorum, raises)
		case v == press && presses < maxPresses:
			// We keep what we have, and give the others time to withdraw.
			if err = a.pause(ctx, pressPause<<presses); err == nil {
				presses++
				a.proposeAgain()
				continue
			}
		case v == giveWay && !a.gaveWay:
			// The second time, those that are pending have had their time: it is held.
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
			// What was proposed may be withdrawn at any time, and what the members
			// want now is not above it: only another lease ID is safe.
			return driver.AcquireReply{Outcome: driver.Spent}, nil
		case err != nil:
			return driver.AcquireReply{}, err
		case v == cancelled:
			return driver.AcquireReply{Outcome: driver.Cancelled}, nil
		}
		// inUse, or a press or giveWay whose rounds are over.
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
	t := tenure{token: token, lead: a.present.lead, ttl: a.req.TTL, holder: a.req.Holder, granted: time.Now()}
	if token != a.present.token {
		// The lease is of an earlier attempt, whose lead nobody knows any more. What
		// the present proposal has taken beside it is to go.
		t.lead = 0
		a.abandonFresh()
	}
	a.ledger.grant(a.req.LeaseID, t)
	return driver.AcquireReply{Outcome: driver.Granted, Token: token}, nil
}

// pause waits for d, or fails when ctx or the engine ends.
func (a *attempt) pause(ctx context.Context, d time.Duration) error {
	_, _, err := next[vote](ctx, a.Engine, nil, time.After(d))
	return err
}
