package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// guessLead is how far a token from this machine's clock may be ahead of a
	// member's, and liftedLead one that MinToken demands, or counters that it has
	// lifted. For what follows from the members' clocks see Engine.lead.
	guessLead  = time.Second
	liftedLead = driver.MaxTokenLead + time.Minute
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

// A vote is one member's answer to one proposal.
type vote struct {
	result[driver.ProposeReply]
	token uint64
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

// propose starts a round: it proposes a token to all members. INVARIANT I5: it
// is above all that were proposed for this lease ID before, in whatever attempt.
// So the withdrawal of those, which may arrive at any time, never ends a lease
// that counts.
func (a *attempt) propose(p proposal) {
	a.earlier, a.present = a.present.token, p
	a.ledger.propose(a.entry, p)
	clear(a.ballot.answers)
	a.send(a.all())
}

// proposeAgain proposes the present token again, to the members where others
// were in the way.
func (a *attempt) proposeAgain() {
	var again []int
	for i, got := range a.ballot.answers {
		if got.state == answered && got.reply.Vote == driver.VoteHeld {
			a.ballot.answers[i] = answer{}
			again = append(again, i)
		}
	}
	a.send(again)
}

// send sends the present proposal to some members.
func (a *attempt) send(to []int) {
	req := driver.ProposeRequest{
		Name: a.req.Name, LeaseID: a.req.LeaseID, TTL: a.req.TTL, Holder: a.req.Holder,
		Token: a.present.token, Replaces: a.earlier, Lead: a.present.lead, Quarantine: a.quarantine(),
	}
	a.awaited += len(to)
	for _, i := range to {
		a.running.Go(func() {
			ctx, cancel := context.WithTimeout(a.life, a.timeout(req.TTL))
			defer cancel()
			reply, err := a.members[i].Propose(ctx, req)
			a.inbox <- vote{token: req.Token, result: result[driver.ProposeReply]{from: i, value: reply, err: err}}
		})
	}
}

// await collects answers until there is something to do.
func (a *attempt) await(ctx context.Context) (verdict, error) {
	began := time.Now()
	var grace <-chan time.Time
	for {
		v, firm := a.ballot.verdict()
		if firm {
			return v, nil
		}
		if v != undecided && grace == nil {
			timer := time.NewTimer(a.grace(v, began))
			defer timer.Stop()
			grace = timer.C
		}
		select {
		case vote := <-a.inbox:
			a.receive(vote)
		case <-grace:
			if v != undecided {
				return v, nil
			}
			grace = nil
		case <-ctx.Done():
			return undecided, ctx.Err()
		case <-a.life.Done():
			return undecided, errClosing
		}
	}
}

// grace returns how long answers that would make a better verdict are waited
// for. Who gave way is in nobody's way, and can be patient.
func (a *attempt) grace(v verdict, began time.Time) time.Duration {
	if v == giveWay && a.gaveWay {
		return min(patience, a.timeout(a.req.TTL))
	}
	return graceAfter(began)
}

// receive notes one answer.
func (a *attempt) receive(v vote) {
	a.awaited--
	a.touched[v.from] = a.touched[v.from] || v.mayHaveTaken()
	if v.err == nil {
		a.ledger.learn(a.req.Name, v.value.Counter, a.ballot.leadOf(v.value))
	}
	if v.token != a.present.token {
		return
	}
	answer := &a.ballot.answers[v.from]
	if answer.state, answer.reply, answer.err = answered, v.value, v.err; v.err != nil {
		answer.state = failed
	}
}

// mayHaveTaken reports whether the member may have a lease after this answer
// that it did not have before.
func (v *vote) mayHaveTaken() bool {
	if v.err != nil {
		return !driver.Definite(v.err)
	}
	return v.value.Vote == driver.VoteAccepted
}

// errSpent: the members want a token that is not above all that were proposed
// for this lease ID.
var errSpent = errors.New("the lease ID is spent")

// raise starts a round with a greater token, or fails with errSpent if the
// members want a smaller one: this machine's clock is ahead, or was.
func (a *attempt) raise() error {
	want, ok := a.ballot.next()
	if !ok {
		return a.noToken()
	}
	a.adjustClock()
	p := proposal{max(want.token, a.ballot.above(a.present.token)), want.lead}
	if p.token > want.token+uint64(guessLead.Microseconds()) || a.ballot.followers(p) < a.quorum {
		return errSpent
	}
	a.propose(p)
	return nil
}

// stepBack withdraws what members have accepted, in the background.
func (a *attempt) stepBack() {
	a.withdrawFrom(a.touched)
	clear(a.touched)
}

// giveWay lets others have the members that accepted, and goes on listening:
// if nobody wants them, because the lease in the way was released already where
// no answer came from yet, there will be another round.
func (a *attempt) giveWay() {
	a.gaveWay = true
	a.stepBack()
	a.ballot.yield(a.present.token)
}

// noToken explains why no token suits a majority.
func (a *attempt) noToken() error {
	allowed := 0
	for _, answer := range a.ballot.answers {
		if answer.free() && a.req.MinToken <= answer.reply.Clock+uint64(driver.MaxTokenLead.Microseconds()) {
			allowed++
		}
	}
	if allowed < a.quorum {
		return errMinToken(a.req.MinToken)
	}
	return fmt.Errorf("%w agrees on a token: their clocks are more than %s apart", ErrNoQuorum, a.lead())
}

// adjustClock notes the members' time if a guess was too far off for most.
func (a *attempt) adjustClock() {
	var clocks []uint64
	for _, answer := range a.ballot.answers {
		if answer.free() && answer.reply.Vote == driver.VoteRefused && answer.reply.Counter < a.present.token {
			clocks = append(clocks, answer.reply.Clock)
		}
	}
	if len(clocks) >= a.quorum && a.present.lead == guessLead {
		slices.Sort(clocks)
		a.ledger.adjust(clocks[len(clocks)/2])
	}
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

// abandon makes sure, in the background, that nothing of the attempt stays
// behind: what members have accepted is withdrawn at once, and what they have
// not answered yet, as soon as they do. INVARIANT I5.
func (a *attempt) abandon() {
	a.withdrawFrom(a.touched)
	awaited := a.awaited
	a.running.Go(func() {
		for range awaited {
			if v := <-a.inbox; v.mayHaveTaken() {
				a.janitors[v.from].add(a.withdrawal())
			}
		}
	})
}

// abandonFresh withdraws the present token from the members that said that
// they accepted it. No other may be told: it could have the lease that counts,
// with a smaller token.
func (a *attempt) abandonFresh() {
	for i, answer := range a.ballot.answers {
		if answer.state == answered && answer.reply.Vote == driver.VoteAccepted {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

func (a *attempt) withdrawFrom(members []bool) {
	for i, tell := range members {
		if tell {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

// withdrawal is the request that undoes the present proposal and all before it,
// which are smaller.
func (a *attempt) withdrawal() withdrawal {
	return withdrawal{
		WithdrawRequest: driver.WithdrawRequest{
			Name: a.req.Name, LeaseID: a.req.LeaseID, Token: a.present.token, Lead: a.lift(a.present.lead),
		},
		until: time.Now().Add(max(a.req.TTL, driver.TombstoneTTL)),
	}
}
