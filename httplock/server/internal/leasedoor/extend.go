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

// extend extends leases to ttl, and notes the outcome for each.
func (d *leases) extend(ctx context.Context, r *door.Request, all []*target, ttl func(*target) time.Duration) error {
	if err := d.delays(ctx, r, all); err != nil {
		return err
	}
	var sent []*target
	var reqs []driver.ExtendRequest
	for _, t := range all {
		if t.err == nil {
			sent = append(sent, t)
			reqs = append(reqs, driver.ExtendRequest{Name: t.Name, LeaseID: t.id(), TTL: ttl(t), Token: t.FencingToken})
		}
	}
	results, _, err := door.Split(ctx, r, reqs, func(req driver.ExtendRequest) string { return req.Name }, d.extendPart,
		func(err error) result { return result{err: err} })
	if err != nil {
		return err
	}
	for i, t := range sent {
		t.result = results[i]
	}
	for _, t := range all {
		t.err = d.About(ctx, "lease of", t.Name, t.id(), t.err)
	}
	return nil
}

// tokensOf fills in the tokens of renewed leases. It looks up those that the client has
// not sent. A lease that it cannot find was renewed nevertheless.
func (d *leases) tokensOf(ctx context.Context, r *door.Request, all []*target) error {
	var unknown []*target
	for _, t := range all {
		switch {
		case t.err != nil:
		case t.FencingToken == 0:
			unknown = append(unknown, t)
		default:
			t.token = new(wire.TokenOf(t.FencingToken))
		}
	}
	return r.Each(len(unknown), func(i int) {
		t := unknown[i]
		if h, err := d.Holding(ctx, t.Name, t.id()); err == nil {
			t.token = new(wire.TokenOf(h.Token))
		}
	})
}

// delays fills in the lock delays of leases, and the errors of leases that cannot be extended.
func (d *leases) delays(ctx context.Context, r *door.Request, all []*target) error {
	var labelled []*target
	for _, t := range all {
		if lease.Labelled(t.id(), false) != t.id() {
			labelled = append(labelled, t)
		}
	}
	return r.Each(len(labelled), func(i int) {
		t := labelled[i]
		t.delay, t.err = d.delayOf(ctx, t)
	})
}

// delayOf returns the lock delay of a lease. If nothing but the delay is left, the lease has
// expired for its holder, and the error is driver.ErrLost.
func (d *leases) delayOf(ctx context.Context, t *target) (time.Duration, error) {
	h, err := d.Holding(ctx, t.Name, t.id())
	delay := lease.Term(h.Holder, lease.LockDelayLabel)
	switch {
	case err == nil && h.Left() <= 0:
		return 0, driver.ErrLost
	case err == nil && t.ttl()+delay > holdfast.MaxTTL:
		return 0, door.Invalid(fmt.Sprintf("ttl_ms: with the lock_delay_ms of the lease it exceeds %s", holdfast.MaxTTL))
	}
	return delay, err
}
