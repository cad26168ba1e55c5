package quorumlock

import "github.com/holdfast-locks/holdfast/driver"

// giveWay withdraws from the members that accepted, so that other attempts can use them, and waits
// for more answers. If the pending members have already released the blocking lease, there is
// another round.
func (a *attempt) giveWay() {
	a.gaveWay = true
	a.withdrawFrom(a.touched)
	clear(a.touched) // receive records later acceptances
	a.ballot.yield(a.present.token)
}

// abandon withdraws the attempt in the background: accepted proposals at once, and pending ones
// when the members answer. A request that gets no answer within its time limit counts as carried
// out. INVARIANT I5.
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

// withdrawFrom passes the withdrawal to the janitors of the given members. They repeat it until the
// members have answered.
func (a *attempt) withdrawFrom(members []bool) {
	for i, is := range members {
		if is {
			a.janitors[i].add(a.withdrawal())
		}
	}
}

// withdrawal returns the request that undoes the present proposal and all earlier ones of this
// engine, whose tokens are smaller. INVARIANT I5: it must not withdraw other engines' proposals for
// this lease ID, which may have been granted.
func (a *attempt) withdrawal() withdrawal {
	return newWithdrawal(driver.WithdrawRequest{
		Name: a.req.Name, LeaseID: a.req.LeaseID, Proposer: a.proposer, Token: a.present.token, Lead: a.lift(a.present.lead),
	}, a.req.TTL)
}
