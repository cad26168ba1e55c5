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
// one lock after the other.
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

	ballot  ballot
	present proposal
	earlier uint64    // the greatest token that was proposed before and counts no longer
	inbox   chan vote // the answers of all rounds; it never blocks a sender
	awaited int       // answers that have not been received
	touched []bool    // members that may have accepted something
	gaveWay bool
}

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

// pause waits for d, or fails when ctx or the engine ends.
func (a *attempt) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-a.life.Done():
		return errClosing
	}
}
