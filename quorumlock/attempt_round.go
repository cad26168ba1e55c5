package quorumlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A vote is one member's answer to one proposal. A later proposal may have replaced that proposal.
type vote struct {
	result[driver.ProposeReply]
	token uint64 // that was proposed
}

// mayHaveTaken reports whether the member may have a new lease after this answer.
func (v *vote) mayHaveTaken() bool {
	if v.err != nil {
		return !driver.Definite(v.err) // the answer was lost, not the request
	}
	return v.value.Vote == driver.VoteAccepted
}

// propose starts a round: it proposes a token to all members. INVARIANT I5: the token is above all
// earlier proposals for this lease ID, in any attempt. So a withdrawal of an earlier proposal,
// which may arrive at any time, never ends a lease that counts.
func (a *attempt) propose(p proposal) {
	a.earlier, a.present = a.present.token, p
	a.ledger.propose(a.entry, p)
	clear(a.ballot.answers)
	a.send(func(answer) bool { return true })
}

// proposeAgain proposes the present token again, to members that another lease has blocked.
// Members that accepted it need no repeat, and members that failed have had their time.
func (a *attempt) proposeAgain() {
	a.send(func(got answer) bool { return got.is(driver.VoteHeld) })
}

// send sends the present proposal to the members for whose latest answer to returns true, and
// resets those answers.
func (a *attempt) send(to func(answer) bool) {
	req := driver.ProposeRequest{
		Name: a.req.Name, LeaseID: a.req.LeaseID, Proposer: a.proposer, TTL: a.req.TTL, Holder: a.req.Holder,
		Token: a.present.token, Replaces: a.earlier, Lead: a.present.lead, Quarantine: a.quarantine(),
	}
	// sendAll does not fit: the answers of several rounds use one channel, and abandon may read
	// them after the caller has returned.
	for i, got := range a.ballot.answers {
		if !to(got) {
			continue
		}
		a.ballot.answers[i] = answer{}
		a.awaited++
		a.running.Go(func() {
			ctx, cancel := ask.Limit(a.life, a.timeout(req.TTL))
			defer cancel()
			reply, err := a.members[i].Propose(ctx, req)
			a.inbox <- vote{token: req.Token, result: result[driver.ProposeReply]{from: i, value: reply, err: err}}
		})
	}
}

// await collects answers until a verdict is firm, or does not improve within the grace. The grace
// begins with the first verdict that calls for action, and further answers do not extend it.
func (a *attempt) await(ctx context.Context) (verdict, error) {
	began := time.Now()
	var grace <-chan time.Time
	for {
		v, firm := a.ballot.verdict()
		if firm {
			return v, nil
		}
		if v != undecided && grace == nil {
			grace = time.After(a.grace(v, began))
		}
		vote, over, err := next(ctx, a.engine, a.inbox, grace)
		switch {
		case err != nil:
			return undecided, err
		case !over:
			a.receive(vote)
		case v != undecided:
			return v, nil
		default:
			grace = nil // an answer took the verdict back: the next has its own
		}
	}
}

// grace returns how long to wait for answers that may improve the verdict. An attempt that
// gave way blocks no other, and can wait for longer.
func (a *attempt) grace(v verdict, began time.Time) time.Duration {
	if v == giveWay && a.gaveWay {
		return min(patience, a.timeout(a.req.TTL))
	}
	return graceAfter(began)
}

// receive records one answer.
func (a *attempt) receive(v vote) {
	a.awaited--
	a.touched[v.from] = a.touched[v.from] || v.mayHaveTaken()
	if v.err == nil {
		a.ledger.learn(a.req.Name, v.value.Counter, a.ballot.leadOf(v.value))
	}
	// INVARIANT I2: only acceptances of the same token make a majority.
	if v.token != a.present.token {
		return
	}
	answer := &a.ballot.answers[v.from]
	if answer.state, answer.reply, answer.err = answered, v.value, v.err; v.err != nil {
		answer.state = failed
	}
}
