package quorumlock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine. A lease is extended when a majority of the
// members has it; members that lost it are repaired afterwards, in the
// background. If a majority does not have it, it is lost, and without a
// majority of answers the outcome is unknown. A TTL longer than MaxTTL is
// driver.ErrInvalid. A member has as long to answer as the longest TTL allows; it
// is for the caller to ask again for a lease that cannot wait so long.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	x := &extension{Engine: e, began: time.Now(), reqs: reqs, errs: make([]error, len(reqs))}
	if err := e.enter(ctx); err != nil {
		for i := range x.errs {
			x.errs[i] = err
		}
		return x.errs
	}
	defer e.running.Done()
	x.prepare()
	if len(x.renewals) > 0 {
		x.run(ctx)
	}
	return x.errs
}

// An extension is one call of Extend under way.
type extension struct {
	*Engine
	began time.Time
	reqs  []driver.ExtendRequest
	errs  []error

	renewals []driver.RenewRequest // what goes to each member
	leases   []renewed             // what has come of each renewal
	longest  time.Duration         // of the TTLs
}

// A renewed is one lease of an extension, and what the members have said.
type renewed struct {
	index   int // in reqs
	known   tenure
	decided bool
	gone    bool           // it is lost, and what is left of it is to be taken away
	heard   int            // members that answered, or failed
	tokens  map[uint64]int // how many members have the lease with which token
	has     []int          // members that have it
	lost    []int          // members that do not
	failed  []error
	repair  []int // members that are to be repaired if a majority has the lease as we know it
}

// prepare makes the requests to the members.
func (x *extension) prepare() {
	for i, req := range x.reqs {
		if err := driver.CheckTTL(x.Capabilities(), "TTL", req.TTL); err != nil {
			x.errs[i] = err
			continue
		}
		known, _ := x.ledger.read(req.LeaseID)
		x.leases = append(x.leases, renewed{index: i, known: known, tokens: map[uint64]int{}})
		x.renewals = append(x.renewals, driver.RenewRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
		x.longest = max(x.longest, req.TTL)
	}
}

// run asks all members and collects answers until each lease is decided.
func (x *extension) run(ctx context.Context) {
	answers := ask(x.Engine, x.timeout(x.longest), x.all(), func(ctx context.Context, i int) ([]driver.RenewReply, error) {
		return x.renew(ctx, i, x.renewals)
	})
	left, heard := len(x.leases), 0
	var err error
	for left > 0 && heard < len(x.members) && err == nil {
		select {
		case a := <-answers:
			heard++
			left -= x.receive(a)
		case <-ctx.Done():
			err = ctx.Err()
		case <-x.life.Done():
			err = errClosing
		}
	}
	x.stop(err)
	x.running.Go(func() { x.finish(answers, len(x.members)-heard) })
}

func (x *extension) renew(ctx context.Context, member int, reqs []driver.RenewRequest) ([]driver.RenewReply, error) {
	replies := x.members[member].Renew(ctx, reqs)
	if len(replies) != len(reqs) {
		return nil, fmt.Errorf("%d answers to %d requests", len(replies), len(reqs))
	}
	return replies, nil
}

// receive notes one member's answer and returns how many leases it decided.
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

// count notes what one member said of the lease.
func (l *renewed) count(from int, reply driver.RenewReply) {
	l.heard++
	switch {
	case reply.Err == nil:
		l.tokens[reply.Token]++
		l.has = append(l.has, from)
	case isLost(reply.Err):
		l.lost = append(l.lost, from)
	default:
		l.failed = append(l.failed, reply.Err)
		return
	}
	if reply.Token != l.known.token {
		l.repair = append(l.repair, from)
	}
}

// decide sets the lease's answer if the members' answers allow only one.
func (x *extension) decide(l *renewed) bool {
	token, most := l.most()
	switch {
	case most >= x.quorum:
		x.keep(l, token)
		return true
	case most+len(l.failed)+len(x.members)-l.heard < x.quorum:
		x.lose(l)
		return true
	}
	return false
}

// most returns the token with which most members have the lease, and how many.
func (l *renewed) most() (token uint64, most int) {
	for t, count := range l.tokens {
		if count > most {
			token, most = t, count
		}
	}
	return token, most
}

// keep answers that the lease is extended, unless it may be over by now.
func (x *extension) keep(l *renewed, token uint64) {
	req := x.reqs[l.index]
	if took := time.Since(x.began); tooLate(took, req.TTL) {
		x.errs[l.index] = fmt.Errorf("the quorum's members answered after %s, too late for a TTL of %s",
			took.Round(time.Millisecond), req.TTL)
		return
	}
	t := tenure{token: token, ttl: max(req.TTL, l.known.ttl), holder: l.known.holder}
	if token == l.known.token {
		t.lead = l.known.lead
	}
	x.ledger.grant(req.LeaseID, t)
}

// lose answers that the lease is lost. What is left of it is taken away when
// all members have answered.
func (x *extension) lose(l *renewed) {
	x.errs[l.index] = driver.ErrLost
	if l.gone = l.known.token != 0; l.gone {
		x.ledger.end(x.reqs[l.index].LeaseID)
	}
}

// stop answers for the leases that are not decided: with err, or if that is
// nil, because all members have answered or failed.
func (x *extension) stop(err error) {
	for n := range x.leases {
		l := &x.leases[n]
		if l.decided {
			continue
		}
		if x.errs[l.index] = err; err == nil {
			x.errs[l.index] = x.undecided(l)
		}
	}
}

// undecided explains why neither is certain, that a lease is extended and that
// it is lost.
func (x *extension) undecided(l *renewed) error {
	for _, err := range l.failed {
		if !driver.Definite(err) || len(l.has) > 0 {
			return undecidedError(l.failed, len(x.members))
		}
	}
	return missing(l.failed, x.quorum, len(x.members), 0)
}

// finish hears the members that were slower. Then it gives the leases that are
// extended back to members that lack them, and takes away what is left of those
// that are lost. It does not matter if a repair fails: the next extension tries
// again.
func (x *extension) finish(answers <-chan result[[]driver.RenewReply], left int) {
	for range left {
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
		if l.gone {
			x.clear(l, x.renewals[n])
		}
		if req, ok := x.repair(l, x.renewals[n]); ok {
			for _, i := range l.repair {
				repairs[i] = append(repairs[i], req)
			}
		}
	}
	for i, reqs := range repairs {
		if len(reqs) > 0 {
			ask(x.Engine, x.timeout(x.longest), []int{i}, func(ctx context.Context, i int) ([]driver.RenewReply, error) {
				return x.renew(ctx, i, reqs)
			})
		}
	}
}

// repair returns the request to members that lack the lease, if they are to
// have it. INVARIANT I4: only a lease that a majority has. One that was
// released meanwhile the members refuse.
func (x *extension) repair(l *renewed, req driver.RenewRequest) (driver.RenewRequest, bool) {
	lease, _ := x.ledger.read(req.LeaseID)
	if _, most := l.most(); most < x.quorum || lease.token == 0 || lease.token != l.known.token {
		return req, false
	}
	req.Repair, req.Token, req.Holder, req.Quarantine = true, lease.token, lease.holder, x.quarantine()
	return req, true
}

// clear takes away what is left of a lost lease.
func (x *extension) clear(l *renewed, req driver.RenewRequest) {
	for _, i := range l.has {
		x.janitors[i].add(withdrawal{
			WithdrawRequest: driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Token: l.known.token, Lead: x.lift(l.known.lead)},
			until:           time.Now().Add(max(req.TTL, driver.TombstoneTTL)),
		})
	}
}
