package sqlitelock

import (
	"context"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Extend implements driver.Engine. The batch is one transaction.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	err := e.transactAll(ctx, len(reqs), func(t *tx) error {
		for i, req := range reqs {
			found, err := t.sql.changed(lengthenSQL, req.Name, t.bootID, req.LeaseID, t.now.boot, t.now.after(req.TTL), int64(req.Token))
			if err != nil {
				return err
			}
			if errs[i] = nil; !found {
				errs[i] = driver.ErrLost
			}
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{lost(err)}, len(reqs))
	}
	return errs
}

// Release implements driver.Engine. The commit also grants the lock to the next in the queue.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	err := e.transact(ctx, func(t *tx) error { return t.release(req) })
	if err == nil {
		e.losses.Ended()
	}
	return lost(err)
}

// release ends the lease and the place of a request.
func (t *tx) release(req driver.ReleaseRequest) error {
	if req.Cancel {
		if err := t.sql.run(cancelSQL, req.LeaseID, t.bootID, t.now.after(driver.TombstoneTTL)); err != nil {
			return err
		}
	}
	if ended, err := t.endUncontended(req); ended || err != nil {
		return err
	}
	v, err := t.settle(req.Name, req.LeaseID)
	if err != nil {
		return err
	}
	if v.Queued {
		if _, err := t.endPlaces(giveUpPlaceSQL, req.Name, req.LeaseID); err != nil {
			return err
		}
	}
	if v.own != 0 {
		return t.end(req, v)
	}
	if err := t.serveNext(req.Name, v); err != nil { // a place may have been removed
		return err
	}
	return t.refuse(driver.ErrLost)
}

// endUncontended ends a lease of a name without places, in one statement if the lease is exclusive.
// It reports false if the name must be settled.
func (t *tx) endUncontended(req driver.ReleaseRequest) (ended bool, err error) {
	if req.KeepFor > 0 {
		return false, nil
	}
	n := 0
	for _, query := range [2]string{endSoleSQL, endAloneSQL} {
		n, err = t.endLeases(endOf(&req), query, req.Name, t.bootID, req.LeaseID, t.now.boot)
		if n > 0 || err != nil {
			break
		}
	}
	return n > 0, err
}

// end ends the live lease of a request, now or after KeepFor.
func (t *tx) end(req driver.ReleaseRequest, v view) error {
	if req.KeepFor <= 0 {
		if _, err := t.endLeases(endOf(&req), endSQL, req.Name, t.bootID, req.LeaseID, t.now.boot); err != nil {
			return err
		}
		return t.serveNext(req.Name, v)
	}
	_, err := t.endLeases(endOf(&req), keepClosedSQL, req.Name, t.bootID, req.LeaseID, t.now.boot, t.now.after(req.KeepFor))
	if err != nil || !v.Queued {
		return err
	}
	if err := t.serveNext(req.Name, v); err != nil {
		return err
	}
	// The lock may become free earlier now: the head of the queue must reset its timer.
	var head lockinfo.LeaseID
	found, err := t.sql.one(tellHeadSQL, []any{req.Name}, &head)
	if found {
		t.tell(head, driver.Notice{})
	}
	return err
}

// Downgrade implements driver.Downgrader.
func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return e.transact(ctx, func(t *tx) error {
		v, err := t.settle(req.Name, req.LeaseID)
		switch {
		case err != nil:
			return err
		case v.own == 0 || v.Taken.Limit() != 0:
			return t.refuse(driver.ErrLost)
		case v.Taken == lockinfo.Shared:
			return nil // INVARIANT I6: a repeat
		}
		err = t.sql.run(downgradeSQL, req.Name, t.bootID, req.LeaseID, t.now.boot, modes.Exclusive, modes.Shared)
		if err != nil {
			return err
		}
		return t.serveNext(req.Name, v)
	})
}
