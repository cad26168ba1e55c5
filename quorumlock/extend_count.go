package quorumlock

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A renewed is one lease of an extension, with the answers of the members. Each member that has
// answered is counted in has, lost or failed.
type renewed struct {
	index   int    // in reqs
	known   tenure // from the ledger; its token is 0 if there is none
	decided bool
	tokens  map[uint64]int // how many members have the lease, by token
	has     []int          // members that have it
	lost    int            // number of members that do not have it
	failed  []error
	repair  []int // members to repair if a majority has the lease as in known
}

// receive records one member's answers and returns how many leases they decided.
func (x *extension) receive(a result[[]driver.RenewReply]) (decided int) {
	for n := range x.leases {
		l := &x.leases[n]
		reply := driver.RenewReply{Err: a.err}
		if a.err == nil {
			reply = a.value[n]
		}
		l.count(a.from, reply)
		if !l.decided && x.decide(l) {
			l.decided = true
			decided++
		}
	}
	return decided
}

// count records the answer of one member.
//
// INVARIANT I2: leases of one ID with different tokens are different leases. What an earlier
// attempt left on a member does not count for the majority of this lease.
func (l *renewed) count(from int, reply driver.RenewReply) {
	switch {
	case reply.Err == nil:
		l.tokens[reply.Token]++
		l.has = append(l.has, from)
	case isLost(reply.Err):
		l.lost++
	default:
		l.failed = append(l.failed, reply.Err)
		return // it may have the lease
	}
	if reply.Token != l.known.token { // none, or from an earlier attempt
		l.repair = append(l.repair, from)
	}
}

// decide sets the result of the lease if the members' answers allow only one.
func (x *extension) decide(l *renewed) bool {
	token, most := l.most()
	switch {
	case most >= x.quorum:
		// A majority has extended it: no other lease can have a majority meanwhile.
		x.keep(l, token)
		return true
	case most+len(x.members)-len(l.has)-l.lost < x.quorum:
		// Even with all members that failed or are pending, too few have it. INVARIANT I4: it does
		// not come back.
		x.lose(l)
		return true
	}
	return false
}

// most returns the token with which the most members have the lease, and their number.
func (l *renewed) most() (token uint64, most int) {
	for t, count := range l.tokens {
		if count > most {
			token, most = t, count
		}
	}
	return token, most
}

// keep records that the lease is extended, unless it may have ended by now. The error is then not
// definite, because the members may have extended it in time.
func (x *extension) keep(l *renewed, token uint64) {
	req := x.reqs[l.index]
	if took := time.Since(x.began); tooLate(took, req.TTL) {
		x.errs[l.index] = fmt.Errorf("the quorum's members answered after %s, too late for a TTL of %s",
			took.Round(time.Millisecond), req.TTL)
		return
	}
	// Clean-ups use the longest TTL so far, so that a shorter one does not cut them short.
	t := tenure{token: token, ttl: max(req.TTL, l.known.ttl), holder: l.known.holder, granted: l.known.granted}
	if token == l.known.token {
		t.lead = l.known.lead
	}
	x.ledger.grant(req.LeaseID, t)
}

// lose records that the lease is lost.
func (x *extension) lose(l *renewed) {
	x.errs[l.index] = driver.ErrLost
	if l.known.token != 0 {
		x.ledger.end(x.reqs[l.index].LeaseID)
	}
}
