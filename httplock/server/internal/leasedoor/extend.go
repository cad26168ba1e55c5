package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// extendPart extends leases of one route. It repeats requests that fail, until
// lease.RequestTimeout: a repeated Extend is harmless (INVARIANT I6).
func (d *leases) extendPart(ctx context.Context, reqs []driver.ExtendRequest) []result {
	results := make([]result, len(reqs))
	open := make([]int, len(reqs)) // indices of requests without a final reply
	for i := range open {
		open[i] = i
	}
	f := ask.Until(ctx, lease.RequestTimeout, func(ctx context.Context) error {
		some := make([]driver.ExtendRequest, len(open))
		for i, index := range open {
			some[i] = reqs[index]
		}
		sent := time.Now() // INVARIANT I3: before the first byte is written
		errs := d.House.Engine.Extend(ctx, some)
		var again []int
		var last error
		for i, index := range open {
			res := result{sent: sent, err: ask.Effective(ctx, errs[i])}
			if errors.Is(results[index].err, driver.ErrOutcomeUnknown) && errors.Is(res.err, driver.ErrUnavailable) {
				res = results[index] // an earlier copy may have been carried out
			}
			if results[index] = res; res.err != nil && !driver.Permanent(res.err) {
				again, last = append(again, index), errs[i]
			}
		}
		open = again
		return last
	})
	for _, index := range open {
		if results[index].err == nil { // nothing was sent
			results[index].err = f.Harmless()
		}
	}
	return results
}

// tokensOf fills in the tokens of renewed leases. It looks up those that the client has
// not sent.
func (d *leases) tokensOf(ctx context.Context, r *door.Request, refs []wire.LeaseRef, results []result) error {
	var unknown []int
	for i, ref := range refs {
		switch {
		case results[i].err != nil:
		case ref.FencingToken == 0:
			unknown = append(unknown, i)
		default:
			results[i].token = new(wire.TokenOf(ref.FencingToken))
		}
	}
	return r.Each(len(unknown), func(n int) {
		i := unknown[n]
		results[i].token = d.tokenOf(ctx, refs[i])
	})
}

// tokenOf looks up the token of a lease. It returns nil if it cannot find the lease, which was
// renewed nevertheless.
func (d *leases) tokenOf(ctx context.Context, ref wire.LeaseRef) *wire.Token {
	h, err := d.Holding(ctx, ref.Name, lockinfo.LeaseID(ref.LeaseID))
	if err != nil {
		return nil
	}
	return new(wire.TokenOf(h.Token))
}

// delays fills in the lock delays of leases, and the errors of leases that cannot be extended.
func (d *leases) delays(ctx context.Context, r *door.Request, refs []wire.LeaseRef, delays []time.Duration, results []result) error {
	var have []int
	for i, ref := range refs {
		if id := lockinfo.LeaseID(ref.LeaseID); lease.Labelled(id, false) != id {
			have = append(have, i)
		}
	}
	return r.Each(len(have), func(n int) {
		i := have[n]
		delays[i], results[i].err = d.delayOf(ctx, refs[i])
	})
}

// delayOf returns the lock delay of a lease. If nothing but the delay is left, the lease has
// expired for its holder, and the error is driver.ErrLost.
func (d *leases) delayOf(ctx context.Context, ref wire.LeaseRef) (time.Duration, error) {
	h, err := d.Holding(ctx, ref.Name, lockinfo.LeaseID(ref.LeaseID))
	delay := lease.Term(h.Holder, lease.LockDelayLabel)
	switch {
	case err == nil && h.Left() <= 0:
		return 0, driver.ErrLost
	case err == nil && lease.MS(ref.TTLMS)+delay > holdfast.MaxTTL:
		return 0, door.Invalid(fmt.Sprintf("ttl_ms: with the lock_delay_ms of the lease it exceeds %s", holdfast.MaxTTL))
	}
	return delay, err
}
