package rediscore

import (
	"context"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Acquire implements driver.Engine.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
		return driver.AcquireReply{}, err
	}
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return driver.AcquireReply{}, err
	}
	wait := "0"
	if req.Queue {
		wait = form.MS(req.WaiterTTL)
	}
	keys := e.store.keys.Of(e.scripts.Acquire.Keys, req.Name, req.LeaseID)
	args := append(e.serving(11), maxLead(), wait, form.Flag(req.Once), e.store.inbox.id)
	args = appendRequest(args, req)
	subscription := e.store.inbox.subscription()
	var reply any
	var acked int
	var err error
	if req.Replicas > 0 {
		reply, acked, err = e.acquireReplicated(ctx, req, keys, args)
	} else {
		reply, err = e.execAll(ctx, e.scripts.Acquire, keys, args)
	}
	if err != nil {
		return driver.AcquireReply{}, err
	}
	answer, err := parseAcquire(reply, req.MinToken)
	answer.Acked, answer.Foreign = acked, answer.Foreign && e.foreign
	if err == nil && answer.Outcome == driver.Granted {
		e.store.Granted(1)
	}
	if req.Queue && err == nil && answer.Outcome == driver.Held {
		e.store.inbox.waits(req.LeaseID, subscription)
		e.store.inbox.listen()
	}
	return answer, err
}

// serving returns the arguments of all scripts that may hand a lock over, with
// room for so many more.
func (e *Engine) serving(more int) []string {
	return append(make([]string, 0, 2+more), form.MS(driver.TokenMemory), e.store.keys.Inboxes())
}

func maxLead() string { return form.US(driver.MaxTokenLead) }

// appendRequest adds what request.lua wants of a request.
func appendRequest(args []string, req driver.AcquireRequest) []string {
	return append(args, string(req.LeaseID), strconv.Itoa(int(req.Mode)), strconv.Itoa(req.Limit), strconv.Itoa(req.Permits),
		form.MS(req.TTL), form.Token(req.MinToken), form.Holder(req.Holder))
}

// extendAll sends all requests as one command; in a Redis Cluster, as one per
// slot, at the same time.
func (e *Engine) extendAll(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	name := func(i int) string { return reqs[i].Name }
	e.store.Batch(ctx, len(reqs), name, func(i int, err error) { errs[i] = err }, func(group []int) {
		for len(group) > 0 {
			group = e.extend(ctx, reqs, group, errs)
		}
	})
	return errs
}

// extend asks for one group, and returns those that have to be asked for again.
func (e *Engine) extend(ctx context.Context, reqs []driver.ExtendRequest, group []int, errs []error) (again []int) {
	layout := &e.scripts.Extend.Layout
	keys := make([]string, 0, len(layout.EachKeys)*len(group))
	args := make([]string, 0, len(layout.EachArgs)*len(group))
	for _, i := range group {
		keys = e.store.keys.Append(keys, layout.EachKeys, reqs[i].Name, "")
		args = append(args, string(reqs[i].LeaseID), form.MS(reqs[i].TTL))
	}
	reply, err := e.store.Eval(ctx, e.scripts.Extend, keys, args)
	items, _ := reply.([]any)
	if err == nil && len(items) != len(group) {
		err = form.Malformed("extend", reply)
	}
	for n, i := range group {
		switch {
		case isMoving(err):
			errs[i] = e.extendAlone(ctx, reqs[i], err)
		case err != nil:
			errs[i] = err
		case isMore(items[n]):
			again = append(again, i)
		default:
			errs[i] = parseExtend(items[n])
		}
	}
	return again
}

// Route implements driver.Router: one for each slot of a Redis Cluster.
func (e *Engine) Route(name string) uint32 { return e.store.Route(name) }

func (e *Engine) release(ctx context.Context, req driver.ReleaseRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	remember := "0"
	if req.Cancel {
		remember = form.MS(driver.TombstoneTTL)
	}
	keys := e.store.keys.Of(e.scripts.Release.Keys, req.Name, req.LeaseID)
	args := append(e.serving(3), string(req.LeaseID), form.MS(max(req.KeepFor, 0)), remember)
	var all released
	for {
		reply, err := e.store.Eval(ctx, e.scripts.Release, keys, args)
		if err == nil {
			err = all.parse(reply)
		}
		switch {
		case err != nil && all.ended:
			return halfDone("released", err) // INVARIANT I6: a repeat goes on
		case isMoving(err):
			return e.releaseAlone(ctx, req, err)
		case err != nil:
			return err
		case !all.more:
			if all.ended {
				e.store.Ended()
			}
			return all.err()
		}
	}
}
