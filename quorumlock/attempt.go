package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// maxRaises and maxPresses bound the rounds of one acquire. pressPause is the first pause before
// the same token is proposed again. It doubles, which gives the other attempts an eighth of a
// second to withdraw. A raise succeeds at once unless another grant of the name lifts the counters
// in between; four in a row mean that this client is too far away to keep up.
const (
	maxRaises  = 4
	maxPresses = 7
	pressPause = time.Millisecond
)

// An attempt is one call of Acquire in progress. Only its caller's goroutine uses it, until abandon
// hands it to another.
type attempt struct {
	*engine
	req   driver.AcquireRequest
	entry *entry
	began time.Time

	ballot  ballot    // of the current round
	present proposal  // the proposal of the current round
	earlier uint64    // the greatest token proposed before present; it no longer counts
	inbox   chan vote // the answers of all rounds; it never blocks a sender
	awaited int       // number of pending answers
	touched []bool    // members that may have accepted something
	gaveWay bool      // acceptances have been withdrawn for other attempts

	raises, presses int // rounds so far
}

// newAttempt returns an attempt whose proposals continue after latest, the last proposal for this
// lease ID.
func newAttempt(e *engine, req driver.AcquireRequest, en *entry, latest proposal) *attempt {
	n := len(e.members)
	return &attempt{
		engine: e, req: req, entry: en, began: time.Now(), present: latest,
		ballot:  ballot{quorum: e.quorum, minToken: req.MinToken, lead: e.lead(), answers: make([]answer, n)},
		inbox:   make(chan vote, n*(1+maxRaises+maxPresses)),
		touched: make([]bool, n),
	}
}

// run makes rounds until one is decisive.
//
//	won                       granted
//	ours                      granted if the lease can be extended, or else spent;
//	                          repeated if the request is to be the first
//	raise                     another round, with a greater token
//	press                     another round for the members in use, with the same
//	giveWay                   withdraw, and await the rest of this round
//	inUse                     held
//	spent                     spent, or repeated
//	cancelled                 cancelled
//	unreachable, ambiguous    ErrNoQuorum
//
// Without a lease nothing remains of the attempt (INVARIANT I5).
func (a *attempt) run(ctx context.Context) (driver.AcquireReply, error) {
	a.propose(a.ledger.guess(a.req.Name, max(a.req.MinToken, a.present.token)+1))
	for {
		v, err := a.await(ctx) // the error is from the caller's context or from Close
		if err == nil {
			var another bool
			if another, err = a.again(ctx, v); another {
				continue
			}
		}
		return a.conclude(ctx, v, err)
	}
}

// again starts another round after the verdict v, if that may help.
func (a *attempt) again(ctx context.Context, v verdict) (started bool, err error) {
	switch {
	case v == raise && a.raises < maxRaises:
		// Counters or clocks were ahead of the guess; now they are known.
		a.raises++
		err := a.raise()
		return err == nil, err
	case v == raise:
		return false, fmt.Errorf("%w agrees on a token, in %d rounds: they are too busy with the name, or too far away", ErrNoQuorum, a.raises)
	case v == press && a.presses < maxPresses:
		// Keep the members, and give the other attempts time to withdraw.
		if err := a.pause(ctx, pressPause<<a.presses); err != nil {
			return false, err
		}
		a.presses++
		a.proposeAgain()
		return true, nil
	case v == giveWay && !a.gaveWay:
		// The second time, pending members have had their time: the lock is held.
		a.giveWay()
		return true, nil
	}
	return false, nil
}

// conclude returns the reply for the last verdict, or the error that ended the attempt.
func (a *attempt) conclude(ctx context.Context, v verdict, err error) (driver.AcquireReply, error) {
	switch {
	case err == nil && v == won:
		return a.granted()
	case err == nil && v == ours && !a.req.First:
		return a.repeat(ctx)
	}
	a.abandon()
	switch {
	case errors.Is(err, errSpent):
		// A proposal may be withdrawn at any time, and the members do not accept a greater token
		// now: only another lease ID helps.
		return driver.AcquireReply{Outcome: driver.Spent}, nil
	case err != nil:
		return driver.AcquireReply{}, err
	case (v == ours || v == spent) && a.req.First:
		return driver.AcquireReply{Outcome: driver.Repeated}, nil
	case v == spent:
		// Other engines' proposals for this lease ID block it, and only they may
		// withdraw them: only another lease ID helps.
		return driver.AcquireReply{Outcome: driver.Spent}, nil
	case v == unreachable:
		return driver.AcquireReply{}, a.ballot.failure()
	case v == ambiguous:
		return driver.AcquireReply{}, fmt.Errorf("%w: an earlier request for this lease may have been granted by members that do not answer", ErrNoQuorum)
	case v == cancelled:
		return driver.AcquireReply{Outcome: driver.Cancelled}, nil
	}
	// inUse, or a press or giveWay without rounds left.
	return driver.AcquireReply{Outcome: driver.Held, Blocker: a.ballot.blocker()}, nil
}

// granted returns the lease that a majority has, unless it may have ended: members count the TTL
// from some time after the attempt began.
func (a *attempt) granted() (driver.AcquireReply, error) {
	if took := time.Since(a.began); tooLate(took, a.req.TTL) {
		a.abandon()
		return driver.AcquireReply{}, fmt.Errorf("%w: its members answered after %s, too late for a TTL of %s",
			driver.ErrUnavailable, took.Round(time.Millisecond), a.req.TTL)
	}
	a.ledger.grant(a.req.LeaseID, tenure{
		token: a.present.token, lead: a.present.lead, ttl: a.req.TTL, holder: a.req.Holder, granted: time.Now(),
	})
	return driver.AcquireReply{Outcome: driver.Granted, Token: a.present.token}, nil
}

// repeat returns the lease of this ID that a majority has. Another engine has proposed it, or an
// earlier attempt whose answers were lost. repeat withdraws the present proposal.
func (a *attempt) repeat(ctx context.Context) (driver.AcquireReply, error) {
	a.abandon()
	reply, err := a.engine.again(ctx, a.req, a.ballot.tally().ownToken)
	if isLost(err) {
		// The lease was withdrawn meanwhile. Confirmed leases stay: another engine may have been
		// granted this lease ID.
		return driver.AcquireReply{Outcome: driver.Spent}, nil
	}
	return reply, err
}

// pause waits for d, or fails when ctx or the engine ends.
func (a *attempt) pause(ctx context.Context, d time.Duration) error {
	_, _, err := next[vote](ctx, a.engine, nil, time.After(d))
	return err
}
