package driverdoor

import (
	"cmp"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// leases adds what takes, keeps and ends leases and places.
func (d *desk) leases(mux *http.ServeMux) {
	handle(d, mux, form.Acquire, acquire)
	handle(d, mux, form.AcquireAll, acquireAll)
	handle(d, mux, form.Extend, extend)
	handle(d, mux, form.Refresh, refresh)
	handle(d, mux, form.Release, release)
	handle(d, mux, form.Downgrade, downgrade)
}

func acquire(v *visit, f *form.Request) (form.Reply, error) {
	h := v.House
	if err := cmp.Or(v.NewWork(), f.Check(), v.need(rightTo(f), f.Name)); err != nil {
		return form.Reply{}, err
	}
	req := f.Driver()
	if err := driver.CheckSupport(h.Features.Capabilities, req); err != nil {
		return form.Reply{}, err
	}
	if err := h.Limits.Lease(v.Caller, req.LeaseID, req.TTL); err != nil {
		return form.Reply{}, err
	}
	// The watch comes before the request, so that no notice is missed.
	asked, err := v.desk.asks(v, req)
	if err != nil {
		h.Limits.Ended(v.Caller, req.LeaseID)
		return form.Reply{}, err
	}
	if err := v.granting(); err != nil {
		asked.refused()
		h.Limits.Ended(v.Caller, req.LeaseID)
		return form.Reply{}, err
	}
	reply, err := h.Engine.Acquire(v.ctx, req)
	asked.answered(reply, err)
	v.settle(req, reply.Outcome, err)
	if err != nil {
		return form.Reply{}, err
	}
	return v.routed(form.ReplyOf(reply), req.Name), nil
}

// settle stops counting a lease of the caller that it has not got: neither is it granted,
// nor has it a place, nor may it be either for all that is known.
func (v *visit) settle(req driver.AcquireRequest, outcome driver.Outcome, err error) {
	if err == nil && (outcome == driver.Granted || outcome == driver.Held && req.Queue) || err != nil && !driver.Definite(err) {
		return
	}
	v.House.Limits.Ended(v.Caller, req.LeaseID)
}

// rightTo returns the right that an acquire needs.
func rightTo(f *form.Request) caller.Rights {
	if f.Once {
		return caller.Once
	}
	return caller.Acquire
}

// routed adds the route of the name, by which an engine keeps its batches apart.
func (v *visit) routed(reply form.Reply, name string) form.Reply {
	if router := v.House.Features.Router; router != nil {
		reply.Route = router.Route(name)
	}
	return reply
}

func acquireAll(v *visit, f *form.Requests) (form.AllReply, error) {
	all := v.House.Features.AllAcquirer
	if all == nil {
		return form.AllReply{}, unsupported("AcquireAll")
	}
	if err := cmp.Or(v.NewWork(), f.Check()); err != nil {
		return form.AllReply{}, err
	}
	reqs := make([]driver.AcquireRequest, len(f.Requests))
	for i, one := range f.Requests {
		reqs[i] = one.Driver()
		if err := cmp.Or(v.need(caller.Acquire, one.Name), driver.CheckSupport(v.House.Features.Capabilities, reqs[i])); err != nil {
			return form.AllReply{}, err
		}
	}
	if err := v.granting(); err != nil {
		return form.AllReply{}, err
	}
	for i, req := range reqs {
		if err := v.House.Limits.Lease(v.Caller, req.LeaseID, req.TTL); err != nil {
			v.settleAll(reqs[:i], driver.Held, nil)
			return form.AllReply{}, err
		}
	}
	reply, err := all.AcquireAll(v.ctx, reqs)
	v.settleAll(reqs, reply.Outcome, err)
	return form.AllReplyOf(reply), err
}

func (v *visit) settleAll(reqs []driver.AcquireRequest, outcome driver.Outcome, err error) {
	for _, req := range reqs {
		v.settle(req, outcome, err)
	}
}

func release(v *visit, f *form.End) (form.Nothing, error) {
	if err := cmp.Or(f.Check(), v.needLease(f.Name), v.stillWanted()); err != nil {
		return form.Nothing{}, err
	}
	err := v.House.Engine.Release(v.ctx, f.Driver())
	if err == nil || driver.Definite(err) {
		v.desk.gone(v, f.LeaseID)
		v.House.Limits.Ended(v.Caller, f.LeaseID)
	}
	return form.Nothing{}, err
}

// needLease looks whether the caller may end or lengthen what it has acquired, as a lock
// or to do work once.
func (v *visit) needLease(name string) error {
	if v.Shows(caller.Once, name) {
		return nil
	}
	return v.need(caller.Acquire, name)
}

func downgrade(v *visit, f *form.End) (form.Nothing, error) {
	to := v.House.Features.Downgrader
	if to == nil {
		return form.Nothing{}, unsupported("Downgrade")
	}
	if err := cmp.Or(f.Check(), v.need(caller.Acquire, f.Name), v.stillWanted()); err != nil {
		return form.Nothing{}, err
	}
	return form.Nothing{}, to.Downgrade(v.ctx, driver.DowngradeRequest{Name: f.Name, LeaseID: f.LeaseID})
}

func extend(v *visit, f *form.Renewals) (form.Renewed, error) {
	if err := v.mayRenew(f, v.House.Features.ExtendBatch()); err != nil {
		return form.Renewed{}, err
	}
	reqs := make([]driver.ExtendRequest, len(f.Requests))
	for i, one := range f.Requests {
		reqs[i] = driver.ExtendRequest{Name: one.Name, LeaseID: one.LeaseID, TTL: one.TTL.Duration()}
	}
	errs, routes, err := split(v, reqs, func(r driver.ExtendRequest) string { return r.Name }, v.House.Engine.Extend, func(err error) error { return err })
	if err != nil {
		return form.Renewed{}, err
	}
	reply := form.Renewed{Errors: make([]*form.Error, len(errs)), Routes: routes}
	for i, err := range errs {
		if err == nil {
			v.House.Limits.Renewed(v.Caller, reqs[i].LeaseID, reqs[i].TTL)
		}
		reply.Errors[i] = form.ErrorOf(err)
	}
	return reply, nil
}

func refresh(v *visit, f *form.Renewals) (form.Refreshed, error) {
	queuer := v.House.Features.Queuer
	if queuer == nil {
		return form.Refreshed{}, unsupported("Refresh")
	}
	if err := v.mayRenew(f, driver.MaxBatch); err != nil {
		return form.Refreshed{}, err
	}
	reqs := make([]driver.RefreshRequest, len(f.Requests))
	for i, one := range f.Requests {
		reqs[i] = driver.RefreshRequest{Name: one.Name, LeaseID: one.LeaseID, WaiterTTL: one.TTL.Duration()}
	}
	replies, routes, err := split(v, reqs, func(r driver.RefreshRequest) string { return r.Name }, queuer.Refresh,
		func(err error) driver.RefreshReply { return driver.RefreshReply{Err: err} })
	if err != nil {
		return form.Refreshed{}, err
	}
	reply := form.Refreshed{Replies: make([]form.RefreshReply, len(replies)), Routes: routes}
	for i, one := range replies {
		v.desk.refreshed(v, reqs[i], one)
		reply.Replies[i] = form.RefreshReplyOf(one)
	}
	return reply, nil
}

// mayRenew returns an error unless the whole batch may be asked for.
func (v *visit) mayRenew(f *form.Renewals, most int) error {
	if err := f.Check(most); err != nil {
		return err
	}
	for _, one := range f.Requests {
		if err := v.needLease(one.Name); err != nil {
			return err
		}
	}
	return v.stillWanted()
}
