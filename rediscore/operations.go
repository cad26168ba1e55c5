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

func (e *Engine) extendAll(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	e.store.EvalEach(ctx, len(reqs), Batch{
		Op: "extend", Script: e.scripts.Extend,
		Name: func(i int) (string, driver.LeaseID) { return reqs[i].Name, reqs[i].LeaseID },
		Add: func(args []string, i int) []string {
			return append(args, string(reqs[i].LeaseID), form.MS(reqs[i].TTL))
		},
		Answer: func(i int, item any, err error) {
			switch {
			case isMoving(err):
				errs[i] = e.extendAlone(ctx, reqs[i], err)
			case err != nil:
				errs[i] = err
			default:
				errs[i] = parseExtend(item)
			}
		},
	})
	return errs
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
