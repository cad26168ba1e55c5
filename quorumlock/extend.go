package quorumlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine. A lease is extended when a majority of the
// members has it; members that lost it are repaired afterwards, in the
// background. If a majority does not have it, it is lost, and without a
// majority of answers the outcome is unknown. A TTL longer than MaxTTL is
// driver.ErrInvalid. A member has as long to answer as the longest TTL allows; it
// is for the caller to ask again for a lease that cannot wait that long.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if err := e.enter(ctx); err != nil {
		return slices.Repeat([]error{err}, len(reqs))
	}
	defer e.running.Done()
	x := &extension{Engine: e, began: time.Now(), reqs: reqs, errs: make([]error, len(reqs))}
	x.prepare()
	if len(x.renewals) > 0 {
		x.run(ctx)
	}
	return x.errs
}

// An extension is one call of Extend under way. Its caller's goroutine uses it
// until stop has answered for all leases; then finish does.
type extension struct {
	*Engine
	began time.Time
	reqs  []driver.ExtendRequest
	errs  []error // the answers, by request

	renewals []driver.RenewRequest // what goes to each member
	leases   []renewed             // what has come of each renewal
	longest  time.Duration         // of the TTLs; it decides how long a member may take
}

// prepare makes the requests to the members: all leases in one for each. They do
// not ask for repair yet, because nobody knows yet that a majority has the lease.
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

// run asks all members and collects answers until each lease is decided. One lease
// that is not does not keep the members' other answers from counting.
func (x *extension) run(ctx context.Context) {
	answers := tell(x.Engine, x.timeout(x.longest), func(ctx context.Context, i int) ([]driver.RenewReply, error) {
		return x.renew(ctx, i, x.renewals)
	})
	left, heard := len(x.leases), 0
	var err error
	for left > 0 && heard < len(x.members) && err == nil {
		var a result[[]driver.RenewReply]
		if a, _, err = next(ctx, x.Engine, answers, nil); err == nil {
			heard++
			left -= x.receive(a)
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

// stop answers for the leases that are not decided: with err, or if that is
// nil, because all members have answered or failed.
func (x *extension) stop(err error) {
	for n := range x.leases {
		l := &x.leases[n]
		if l.decided {
			continue
		}
		if x.errs[l.index] = err; err == nil {
			x.errs[l.index] = x.unclear(l)
		}
	}
}

// unclear explains why neither is certain, that a lease is extended and that
// it is lost. Too many members have failed for both. If one of them may have
// carried the request out, or one that answered has, then the outcome is unknown;
// otherwise nothing was extended anywhere, and that is certain.
func (x *extension) unclear(l *renewed) error {
	for _, err := range l.failed {
		if !driver.Definite(err) || len(l.has) > 0 {
			return x.undecided(l.failed)
		}
	}
	return x.missing(l.failed)
}
