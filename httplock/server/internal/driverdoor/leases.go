package driverdoor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// leases adds the methods that take, keep and end leases and places.
func (d *desk) leases() {
	f := d.house.Features
	handle(d, form.Acquire, caller.Acquire|caller.Once, true, acquire)
	handle(d, form.Hold, caller.Acquire, true, hold)
	handle(d, form.AcquireAll, caller.Acquire, f.AllAcquirer != nil, acquireAll)
	handle(d, form.Extend, caller.Acquire|caller.Once, true, extend)
	handle(d, form.Refresh, caller.Acquire|caller.Once, f.Queuer != nil, refresh)
	handle(d, form.Release, caller.Acquire|caller.Once, true, release)
	handleNamed(d, form.Downgrade, caller.Acquire, f.Downgrader != nil, func(v *visit, req *driver.DowngradeRequest) (form.Nothing, error) {
		return form.Nothing{}, f.Downgrader.Downgrade(v.ctx, *req)
	})
}

func acquire(v *visit, req *driver.AcquireRequest) (form.Reply, error) {
	if req.Holder.Person {
		return form.Reply{}, errPerson
	}
	return v.acquire(req)
}

// hold is acquire for a person, who holds the lock without a process.
func hold(v *visit, req *driver.AcquireRequest) (form.Reply, error) {
	if !req.Holder.Person || req.Once {
		return form.Reply{}, door.Invalid("holder.person: want true, and no once, to hold a lock as a person")
	}
	reply, err := v.acquire(req)
	if err == nil && reply.Outcome == driver.Granted {
		v.Audit("hold", slog.String("name", req.Name), slog.Uint64("fencing_token", reply.Token),
			slog.String("for", req.TTL.String()), slog.String("reason", req.Holder.Reason))
	}
	return reply, err
}

var errPerson = door.Invalid("holder.person: only " + form.Hold + " takes a lock for a person")

// found sets the holder's Caller to the authenticated name, and clears Once unless the request
// is for do-once work. The client sets the rest.
func (v *visit) found(req *driver.AcquireRequest) {
	req.Holder.Caller, req.Holder.Once = v.Found(), req.Holder.Once && req.Once
}

func (v *visit) acquire(req *driver.AcquireRequest) (form.Reply, error) {
	h := v.House
	if err := cmp.Or(v.NewWork(), v.need(rightTo(req), req.Name)); err != nil {
		return form.Reply{}, err
	}
	v.found(req)
	if err := driver.CheckSupport(h.Features.Capabilities, *req); err != nil {
		return form.Reply{}, err
	}
	if req.Once {
		switch record, err := v.Room(v.ctx, req.Name); {
		case err != nil:
			return form.Reply{}, err
		case record != nil:
			return v.routed(driver.AcquireReply{Outcome: driver.Recorded, Record: record}, req.Name), nil
		}
	}
	if err := h.Limits.Leases(v.Caller, req.TTL, limit.Lease(req.Name, req.LeaseID)); err != nil {
		return form.Reply{}, err
	}
	// The watch comes before the request, so that no notice is missed.
	asked, err := v.desk.asks(v, *req)
	if err == nil {
		err = v.granting()
	}
	if err != nil {
		asked.refused()
		h.Limits.Ended(v.Caller, limit.Lease(req.Name, req.LeaseID))
		return form.Reply{}, err
	}
	reply, err := h.Engine.Acquire(v.ctx, *req)
	asked.answered(reply, err)
	v.settle(req, reply.Outcome, err)
	if err != nil {
		return form.Reply{}, err
	}
	return v.routed(reply, req.Name), nil
}

// settle stops counting a lease if the caller certainly has neither the lease nor a place.
func (v *visit) settle(req *driver.AcquireRequest, outcome driver.Outcome, err error) {
	if err == nil && (outcome == driver.Granted || outcome == driver.Held && req.Queue) || err != nil && !driver.Definite(err) {
		return
	}
	v.House.Limits.Ended(v.Caller, limit.Lease(req.Name, req.LeaseID))
}

// rightTo returns the right that an acquire needs.
func rightTo(req *driver.AcquireRequest) caller.Rights {
	if req.Once {
		return caller.Once
	}
	return caller.Acquire
}

// routed adds the route of the name. The client's engine sends names of different routes in
// different batches.
func (v *visit) routed(reply driver.AcquireReply, name string) form.Reply {
	if router := v.House.Features.Router; router != nil {
		return form.Reply{AcquireReply: reply, Route: router.Route(name)}
	}
	return form.Reply{AcquireReply: reply}
}

func acquireAll(v *visit, f *form.Batch[driver.AcquireRequest]) (reply driver.AllReply, err error) {
	if err := v.NewWork(); err != nil {
		return reply, err
	}
	reqs := f.Requests
	for i := range reqs {
		if reqs[i].Holder.Person {
			return reply, errPerson
		}
		v.found(&reqs[i])
		if err := cmp.Or(v.need(caller.Acquire, reqs[i].Name), driver.CheckSupport(v.House.Features.Capabilities, reqs[i])); err != nil {
			return reply, err
		}
	}
	if err := v.granting(); err != nil {
		return reply, err
	}
	for i, req := range reqs {
		if err := v.House.Limits.Leases(v.Caller, req.TTL, limit.Lease(req.Name, req.LeaseID)); err != nil {
			v.settleAll(reqs[:i], driver.Held, nil)
			return reply, err
		}
	}
	reply, err = v.House.Features.AllAcquirer.AcquireAll(v.ctx, reqs)
	v.settleAll(reqs, reply.Outcome, err)
	return reply, err
}

func (v *visit) settleAll(reqs []driver.AcquireRequest, outcome driver.Outcome, err error) {
	for i := range reqs {
		v.settle(&reqs[i], outcome, err)
	}
}

func release(v *visit, req *driver.ReleaseRequest) (form.Nothing, error) {
	if err := cmp.Or(v.needLease(req.Name), v.stillWanted()); err != nil {
		return form.Nothing{}, err
	}
	err := v.House.Engine.Release(v.ctx, *req)
	if err == nil || errors.Is(err, driver.ErrLost) {
		v.desk.gone(v, req.LeaseID)
		v.House.Limits.Ended(v.Caller, limit.Lease(req.Name, req.LeaseID))
	}
	return form.Nothing{}, err
}

// needLease does as NeedLease. The text of its error lacks the name: see need.
func (v *visit) needLease(name string) error {
	if v.NeedLease(name) == nil {
		return nil
	}
	return v.need(caller.Acquire, name)
}

func extend(v *visit, f *form.Batch[driver.ExtendRequest]) (reply form.Renewed, err error) {
	errs, routes, err := renewed(v, f.Requests, func(r driver.ExtendRequest) string { return r.Name }, v.House.Engine.Extend,
		func(err error) error { return err })
	if err != nil {
		return reply, err
	}
	reply = form.Renewed{Errors: make([]*form.Error, len(errs)), Routes: routes}
	for i, err := range errs {
		if req := f.Requests[i]; err == nil {
			v.House.Limits.Renewed(v.Caller, limit.Lease(req.Name, req.LeaseID), req.TTL)
		}
		reply.Errors[i] = form.ErrorOf(v.Told(err))
	}
	return reply, nil
}

func refresh(v *visit, f *form.Batch[driver.RefreshRequest]) (reply form.Refreshed, err error) {
	replies, routes, err := renewed(v, f.Requests, func(r driver.RefreshRequest) string { return r.Name }, v.House.Features.Queuer.Refresh,
		func(err error) driver.RefreshReply { return driver.RefreshReply{Err: err} })
	if err != nil {
		return reply, err
	}
	reply = form.Refreshed{Replies: make([]form.RefreshReply, len(replies)), Routes: routes}
	for i, one := range replies {
		req := f.Requests[i]
		v.desk.refreshed(v, req, one)
		if req.WaiterTTL == 0 && (driver.Permanent(one.Err) || one.Err == nil && one.Outcome == driver.Held) {
			v.House.Limits.Ended(v.Caller, limit.Lease(req.Name, req.LeaseID))
		}
		one.Err = v.Told(one.Err)
		reply.Replies[i] = form.RefreshReplyOf(one)
	}
	return reply, nil
}

// renewed sends a batch to the engine if the caller may renew all of it. It sends the requests
// of each route as a batch of their own, all at the same time, because an engine that has just
// been opened knows no routes. If there were several routes, it returns the route of each
// request.
func renewed[Req, Reply any](
	v *visit, reqs []Req, name func(Req) string, send func(context.Context, []Req) []Reply, failed func(error) Reply,
) (replies []Reply, routes []uint32, err error) {
	for _, one := range reqs {
		if err := v.needLease(name(one)); err != nil {
			return nil, nil, err
		}
	}
	if err := v.stillWanted(); err != nil {
		return nil, nil, err
	}
	return door.Split(v.ctx, v.Request, reqs, name, send, failed)
}
