package quorumlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine. A lease is extended when a majority of the members has it;
// members that lost it are repaired afterwards, in the background. If a majority does not have it,
// it is lost. Without a majority of answers the outcome is unknown. A TTL longer than MaxTTL is
// driver.ErrInvalid. The longest TTL determines the members' time limit; the caller must repeat the
// request for a lease that cannot wait that long.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if err := e.enter(ctx); err != nil {
		return slices.Repeat([]error{err}, len(reqs))
	}
	defer e.running.Done()
	x := e.newExtension(reqs)
	x.run(ctx)
	return x.errs
}

// An extension is one call of Extend in progress. Its caller's goroutine uses it until stop
// returns; then finish does.
type extension struct {
	*engine
	began time.Time
	reqs  []driver.ExtendRequest
	errs  []error // the results, by request

	renewals []driver.RenewRequest // the requests to each member
	leases   []renewed             // the result of each renewal
	longest  time.Duration         // of the TTLs; it decides how long a member may take
}

// newExtension makes the requests to the members, one for all leases to each. They request no
// repair yet, because it is unknown whether a majority has a lease.
func (e *engine) newExtension(reqs []driver.ExtendRequest) *extension {
	x := &extension{engine: e, began: time.Now(), reqs: reqs, errs: make([]error, len(reqs))}
	for i, req := range x.reqs {
		if err := driver.CheckTTL(x.Capabilities(), "TTL", req.TTL); err != nil {
			x.errs[i] = err
			continue
		}
		known, _ := x.ledger.read(req.LeaseID)
		x.leases = append(x.leases, renewed{index: i, known: known, tokens: map[uint64]int{}})
		x.renewals = append(x.renewals, driver.RenewRequest{Name: req.Name, LeaseID: req.LeaseID, Token: req.Token, TTL: req.TTL})
		x.longest = max(x.longest, req.TTL)
	}
	return x
}

// run sends the requests to all members and collects answers until each lease is decided.
func (x *extension) run(ctx context.Context) {
	if len(x.renewals) == 0 {
		return
	}
	answers := sendAll(x.engine, x.timeout(x.longest), func(ctx context.Context, i int) ([]driver.RenewReply, error) {
		return x.renew(ctx, i, x.renewals)
	})
	left, received := len(x.leases), 0
	var err error
	for left > 0 && received < len(x.members) && err == nil {
		var a result[[]driver.RenewReply]
		if a, _, err = next(ctx, x.engine, answers, nil); err == nil {
			received++
			left -= x.receive(a)
		}
	}
	x.stop(err)
	x.running.Go(func() { x.finish(answers, len(x.members)-received) })
}

func (x *extension) renew(ctx context.Context, member int, reqs []driver.RenewRequest) ([]driver.RenewReply, error) {
	replies := x.members[member].Renew(ctx, reqs)
	if len(replies) != len(reqs) {
		return nil, fmt.Errorf("%d answers to %d requests", len(replies), len(reqs))
	}
	return replies, nil
}

// stop sets the errors of the leases that are not decided: to err or, if that is nil, to unclear's,
// because all members have answered or failed.
func (x *extension) stop(err error) {
	for n := range x.leases {
		l := &x.leases[n]
		if l.decided {
			continue
		}
		if x.errs[l.index] = err; err == nil {
			x.errs[l.index] = x.unclear(l.failed, len(l.has) > 0)
		}
	}
}
