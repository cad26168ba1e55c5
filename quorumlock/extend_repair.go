package quorumlock

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// finish waits for the slower members. Then it repairs extended leases on members that lack them. If
// a repair fails, the next extension tries again. The rest of a lost lease stays until its expiry:
// another engine may have extended it before a member lost its memory, and what is left then keeps
// others out (INVARIANT I1).
func (x *extension) finish(answers <-chan result[[]driver.RenewReply], left int) {
	for range left { // each ends by its time limit
		a := <-answers
		for n := range x.leases {
			if l := &x.leases[n]; a.err == nil {
				l.count(a.from, a.value[n])
			}
		}
	}
	repairs := make([][]driver.RenewRequest, len(x.members))
	for n := range x.leases {
		l := &x.leases[n]
		if req, ok := x.repair(l, x.renewals[n]); ok {
			for _, i := range l.repair {
				repairs[i] = append(repairs[i], req)
			}
		}
	}
	for i, reqs := range repairs {
		if len(reqs) > 0 {
			x.running.Go(func() {
				ctx, cancel := ask.Limit(x.life, x.timeout(x.longest))
				defer cancel()
				_, _ = x.renew(ctx, i, reqs)
			})
		}
	}
}

// repair returns the request for members that lack the lease, if it must be repaired. INVARIANT I4:
// it repairs only a lease that a majority has, with the token in the ledger. If the lease was
// released or broken meanwhile, the ledger knows it, or the members refuse because their counters
// are above the token.
func (x *extension) repair(l *renewed, req driver.RenewRequest) (driver.RenewRequest, bool) {
	lease, _ := x.ledger.read(req.LeaseID)
	if _, most := l.most(); most < x.quorum || lease.token == 0 || lease.token != l.known.token {
		return req, false
	}
	req.Repair, req.Token, req.Holder, req.Quarantine = true, lease.token, lease.holder, x.quarantine()
	req.Since = lease.since()
	return req, true
}
