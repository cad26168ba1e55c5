package rediscore

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Refresh implements driver.Queuer.
func (e *engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	subscription := e.store.inbox.subscription()
	e.store.EvalEach(ctx, len(reqs), Batch{
		Op: "refresh", Script: e.scripts.Refresh, Args: e.serving(0),
		Name: func(i int) (string, lockinfo.LeaseID) { return reqs[i].Name, reqs[i].LeaseID },
		Add: func(args []string, i int) []string {
			return append(args, string(reqs[i].LeaseID), form.MS(reqs[i].WaiterTTL))
		},
		Answer: func(i int, item any, err error) {
			if err == nil {
				replies[i] = parseRefresh(item)
				err = replies[i].Err
			}
			switch {
			case err != nil:
				replies[i].Err = err
			case replies[i].Outcome == driver.Granted:
				e.store.inbox.expect(reqs[i].LeaseID)
			default:
				replies[i].Foreign = replies[i].Foreign && e.foreign
				e.store.inbox.waits(reqs[i].Name, reqs[i].LeaseID, subscription)
			}
		},
	})
	return replies
}

// Downgrade implements driver.Downgrader.
func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return again(ctx, func() error { return e.downgrade(ctx, req) })
}

func (e *engine) downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	keys, args := e.store.keys.Of(e.scripts.Downgrade.Keys, req.Name, ""), append(e.serving(1), string(req.LeaseID))
	reply, err := e.execAll(ctx, e.scripts.Downgrade, keys, args)
	for err == nil && reply == int64(2) {
		if reply, err = e.execAll(ctx, e.scripts.Downgrade, keys, args); err != nil {
			return halfDone("made shared", err) // INVARIANT I6: a repeat continues
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

// AcquireAll implements driver.AllAcquirer. In a Redis Cluster the names must be in one slot, which
// a common hash tag ensures; otherwise it returns ErrUnsupported.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	var keys []string
	args := append(e.serving(1), maxLead())
	for i, req := range reqs {
		if err := driver.CheckSupport(e.Capabilities(), req); err != nil {
			return driver.AllReply{Refused: i}, acquireAllError(req, err)
		}
		if err := e.store.Enter(ctx, req.Name); err != nil {
			return driver.AllReply{Refused: i}, acquireAllError(req, err)
		}
		if e.store.Slot(req.Name) != e.store.Slot(reqs[0].Name) {
			return driver.AllReply{Refused: i}, acquireAllError(req,
				fmt.Errorf("locks in two slots of a Redis Cluster: taking them in one step is %w; give all names the same hash tag", driver.ErrUnsupported))
		}
		keys = e.store.keys.Append(keys, e.scripts.AcquireAll.EachKeys, req.Name, req.LeaseID)
		args = e.appendRequest(args, req)
	}
	reply, err := e.execAll(ctx, e.scripts.AcquireAll, keys, args)
	if err != nil {
		return driver.AllReply{}, err
	}
	all, err := parseAcquireAll(reply, reqs)
	e.store.Granted(len(all.Tokens))
	return all, err
}

// acquireAllError adds the name of the lock to an error about one of several.
func acquireAllError(req driver.AcquireRequest, err error) error {
	return fmt.Errorf("lock %.40q: %w", req.Name, err)
}

// Watch implements driver.Queuer.
func (e *engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.store.inbox.box.Watch(id) }
