package sqlitelock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
)

// Extend implements driver.Engine. The batch is one transaction.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	err := e.transact(ctx, func(now instant) error {
		for i, req := range reqs {
			found, err := changed(e.write.lengthen, req.Name, e.clock.bootID, req.LeaseID, now.boot, now.after(req.TTL))
			if err != nil {
				return err
			}
			if !found {
				errs[i] = driver.ErrLost
			}
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// Release implements driver.Engine. After the commit it wakes the waiters.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	var ended bool
	err := e.transact(ctx, func(now instant) (err error) {
		if req.Cancel {
			if err := run(e.write.cancel, req.LeaseID, e.clock.bootID, now.after(driver.TombstoneTTL)); err != nil {
				return err
			}
		}
		if req.KeepFor > 0 {
			ended, err = changed(e.write.keep, req.Name, e.clock.bootID, req.LeaseID, now.boot, now.after(req.KeepFor))
		} else {
			ended, err = changed(e.write.end, req.Name, e.clock.bootID, req.LeaseID, now.boot)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !ended:
		return driver.ErrLost
	}
	// A name that KeepFor keeps closed rings as well: its expiry has come
	// nearer, and waiters must set their timers anew.
	e.bell.ring(req.Name)
	e.watches.signal(req.Name)
	return nil
}
