package quorumlock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine. A lease is extended when a majority of the
// members has it; members that lost it are repaired by the way. Without a
// majority of answers the outcome is unknown, and with a majority that does
// not have it, it is lost. A TTL longer than MaxTTL is driver.ErrInvalid.
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
}

// A renewed is one lease of an extension, and what the members have said.
type renewed struct {
	index   int // in reqs
	known   tenure
	decided bool
	tokens  map[uint64]int // how many members have the lease with which token
	lost    int
	failed  []error
	has     []int // members that have it
}

// prepare makes the requests to the members.
func (x *extension) prepare() {
	for i, req := range x.reqs {
		if err := x.checkTTL("TTL", req.TTL); err != nil {
			x.errs[i] = err
			continue
		}
		known, _ := x.book.read(req.LeaseID)
		x.leases = append(x.leases, renewed{index: i, known: known, tokens: map[uint64]int{}})
		x.renewals = append(x.renewals, driver.RenewRequest{
			Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL,
			Token: known.token, Holder: known.holder, Quarantine: x.quarantine(),
		})
	}
}

// run asks all members and collects answers until each lease is decided.
func (x *extension) run(ctx context.Context) {
	answers := ask(x.Engine, x.patience(), x.all(), func(ctx context.Context, i int) ([]driver.RenewReply, error) {
		replies := x.members[i].Renew(ctx, x.renewals)
		if len(replies) != len(x.renewals) {
			return nil, fmt.Errorf("%d answers to %d requests", len(replies), len(x.renewals))
		}
		return replies, nil
	})
	left := len(x.leases)
	for range x.members {
		select {
		case a := <-answers:
			left -= x.receive(a)
		case <-ctx.Done():
			x.stop(ctx.Err())
			return
		case <-x.life.Done():
			x.stop(errClosing)
			return
		}
		if left == 0 {
			return
		}
	}
	x.stop(nil)
}

// patience returns the time limit of one member: that of the shortest TTL.
func (x *extension) patience() time.Duration {
	shortest := x.renewals[0].TTL
	for _, r := range x.renewals {
		shortest = min(shortest, r.TTL)
	}
	return x.timeout(shortest)
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
	switch {
	case reply.Err == nil:
		l.tokens[reply.Token]++
		l.has = append(l.has, from)
	case isLost(reply.Err):
		l.lost++
	default:
		l.failed = append(l.failed, reply.Err)
	}
}

// decide sets the lease's answer if the members' answers allow only one.
func (x *extension) decide(l *renewed) bool {
	req := x.reqs[l.index]
	for token, count := range l.tokens {
		if count < x.quorum {
			continue
		}
		if took := time.Since(x.began); tooLate(took, req.TTL) {
			x.errs[l.index] = fmt.Errorf("the quorum's members answered after %s, too late for a TTL of %s",
				took.Round(time.Millisecond), req.TTL)
			return true
		}
		x.book.grant(req.LeaseID, tenure{token: token, ttl: max(req.TTL, l.known.ttl), holder: l.known.holder})
		return true
	}
	if l.lost > len(x.members)-x.quorum {
		x.lose(l)
		return true
	}
	return false
}

// lose answers that the lease is lost, and takes away what is left of it.
func (x *extension) lose(l *renewed) {
	req := x.reqs[l.index]
	x.errs[l.index] = driver.ErrLost
	if l.known.token == 0 {
		return
	}
	x.book.end(req.LeaseID)
	for _, i := range l.has {
		x.janitors[i].add(withdrawal{
			WithdrawRequest: driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Token: l.known.token, Lead: raiseLead},
			until:           time.Now().Add(max(req.TTL, driver.TombstoneTTL)),
		})
	}
}

// stop answers for the leases that are not decided: because of err, or if that
// is nil because no more answers will come.
func (x *extension) stop(err error) {
	for n := range x.leases {
		l := &x.leases[n]
		switch {
		case l.decided:
		case err != nil:
			x.errs[l.index] = err
		case l.most()+len(l.failed) < x.quorum:
			x.lose(l)
		default:
			x.errs[l.index] = x.undecided(l)
		}
	}
}

// most returns how many members have the lease with the same token.
func (l *renewed) most() int {
	most := 0
	for _, count := range l.tokens {
		most = max(most, count)
	}
	return most
}

// undecided explains why neither is certain, that a lease is extended and that
// it is lost.
func (x *extension) undecided(l *renewed) error {
	for _, err := range l.failed {
		if !certain(err) || len(l.has) > 0 {
			return undecidedError(l.failed, len(x.members))
		}
	}
	return missing(l.failed, x.quorum, len(x.members), 0)
}
