package quorumlock

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// giveWay lets others have the members that accepted, and goes on listening:
// if nobody wants them, because the lease in the way was released already where
// no answer came from yet, there will be another round.
func (a *attempt) giveWay() {
	a.gaveWay = true
	a.withdrawFrom(a.touched)
	clear(a.touched) // what members accept later than this, receive notes anew
	a.ballot.yield(a.present.token)
}

// abandon makes sure, in the background, that nothing of the attempt stays
// behind: what members have accepted is withdrawn at once, and what they have
// not answered yet, as soon as they do. A request that never answers is taken
// for one that was carried out, when its time limit is over. INVARIANT I5.
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
		if answer.is(driver.VoteAccepted) {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

// withdrawFrom leaves the withdrawal to the janitors of some members, who repeat
// it until the members have answered.
func (a *attempt) withdrawFrom(members []bool) {
	for i, tell := range members {
		if tell {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

// withdrawal is the request that undoes the present proposal and all before it,
// which are smaller. It is of use for as long as a copy of the proposal may be
// under way, or what was accepted may last.
func (a *attempt) withdrawal() withdrawal {
	return withdrawal{
		WithdrawRequest: driver.WithdrawRequest{
			Name: a.req.Name, LeaseID: a.req.LeaseID, Token: a.present.token, Lead: a.lift(a.present.lead),
		},
		until: time.Now().Add(max(a.req.TTL, driver.TombstoneTTL)),
	}
}
