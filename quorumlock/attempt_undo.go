package quorumlock

import "github.com/holdfast-locks/holdfast/driver"

// giveWay withdraws from the members that accepted, so that other attempts can have them, and
// waits for more answers: if the blocking lease was released already at the pending members,
// there is another round.
func (a *attempt) giveWay() {
	a.gaveWay = true
	a.withdrawFrom(a.touched)
	clear(a.touched) // receive records later acceptances
	a.ballot.yield(a.present.token)
}

// abandon withdraws the attempt, in the background: accepted proposals at once, and pending
// ones as soon as the members answer. A request without an answer within its time limit
// counts as carried out. INVARIANT I5.
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

// withdrawFrom passes the withdrawal to the janitors of some members, which repeat it until
// the members have answered.
func (a *attempt) withdrawFrom(members []bool) {
	for i, is := range members {
		if is {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

// withdrawal is the request that undoes the present proposal and all earlier ones of this
// engine, which are smaller. INVARIANT I5: it must not withdraw other engines' proposals for
// this lease ID, which may have been granted.
func (a *attempt) withdrawal() withdrawal {
	return newWithdrawal(driver.WithdrawRequest{
		Name: a.req.Name, LeaseID: a.req.LeaseID, Proposer: a.proposer, Token: a.present.token, Lead: a.lift(a.present.lead),
	}, a.req.TTL)
}
