package rediscore

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Refresh implements driver.Queuer. All requests go out as one command; in a
// Redis Cluster, as one per slot, at the same time.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	name := func(i int) string { return reqs[i].Name }
	e.store.Batch(ctx, len(reqs), name, func(i int, err error) { replies[i].Err = err }, func(group []int) {
		for len(group) > 0 {
			group = e.refresh(ctx, reqs, group, replies)
		}
	})
	return replies
}

// refresh asks for one group, and returns those that have to be asked for
// again.
func (e *Engine) refresh(ctx context.Context, reqs []driver.RefreshRequest, group []int, replies []driver.RefreshReply) (again []int) {
	layout := &e.scripts.Refresh.Layout
	keys := make([]string, 0, len(layout.EachKeys)*len(group))
	args := e.serving(len(layout.EachArgs) * len(group))
	for _, i := range group {
		keys = e.store.keys.Append(keys, layout.EachKeys, reqs[i].Name, "")
		args = append(args, string(reqs[i].LeaseID), form.MS(reqs[i].WaiterTTL))
	}
	subscription := e.store.inbox.subscription()
	reply, err := e.store.Eval(ctx, e.scripts.Refresh, keys, args)
	items, _ := reply.([]any)
	if err == nil && len(items) != len(group) {
		err = form.Malformed("refresh", reply)
	}
	for n, i := range group {
		if err != nil {
			replies[i].Err = err
			continue
		}
		if isMore(items[n]) {
			again = append(again, i)
			continue
		}
		replies[i] = parseRefresh(items[n])
		switch {
		case replies[i].Err != nil:
		case replies[i].Outcome == driver.Granted:
			e.store.inbox.expect(reqs[i].LeaseID)
		default:
			replies[i].Foreign = replies[i].Foreign && e.foreign
			e.store.inbox.waits(reqs[i].LeaseID, subscription)
		}
	}
	return again
}

func (e *Engine) downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	keys, args := e.store.keys.Of(e.scripts.Downgrade.Keys, req.Name, ""), append(e.serving(1), string(req.LeaseID))
	reply, err := e.execAll(ctx, e.scripts.Downgrade, keys, args)
	for err == nil && reply == int64(2) {
		if reply, err = e.execAll(ctx, e.scripts.Downgrade, keys, args); err != nil {
			return halfDone("made shared", err) // INVARIANT I6: a repeat goes on
		}
	}
	if err != nil {
		return err
	}
	switch reply {
	case int64(1):
		return nil
	case int64(0):
		return driver.ErrLost
	case int64(-1):
		return fmt.Errorf("%w: the lease is a permit of a semaphore; only an exclusive lease can become shared", driver.ErrKindMismatch)
	}
	return form.Malformed("downgrade", reply)
}

// AcquireAll implements driver.AllAcquirer. In a Redis Cluster the names must be
// in one slot, which a common hash tag makes sure of; otherwise it answers
// ErrUnsupported.
func (e *Engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	var keys []string
	args := append(e.serving(1), maxLead())
	for i, req := range reqs {
		if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
			return driver.AllReply{Refused: i}, acquireAllError(req, err)
		}
		if err := e.store.Enter(ctx, req.Name); err != nil {
			return driver.AllReply{Refused: i}, acquireAllError(req, err)
		}
		if e.Route(req.Name) != e.Route(reqs[0].Name) {
			return driver.AllReply{Refused: i}, acquireAllError(req,
				fmt.Errorf("locks in two slots of a Redis Cluster: taking them in one step is %w; give all names the same hash tag", driver.ErrUnsupported))
		}
		keys = e.store.keys.Append(keys, e.scripts.AcquireAll.EachKeys, req.Name, req.LeaseID)
		args = appendRequest(args, req)
	}
	reply, err := e.execAll(ctx, e.scripts.AcquireAll, keys, args)
	if err != nil {
		return driver.AllReply{}, err
	}
	all, err := parseAcquireAll(reply, reqs)
	e.store.Granted(len(all.Tokens))
	return all, err
}

// acquireAllError says which of several locks an error is about.
func acquireAllError(req driver.AcquireRequest, err error) error {
	return fmt.Errorf("lock %.40q: %w", req.Name, err)
}
