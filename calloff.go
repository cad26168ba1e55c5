package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// callOff makes sure, in the background, that no request of the present lease
// ID leaves a lease behind: one that was granted unseen is released, and one
// that is still under way meets a tombstone. INVARIANT I5.
func (a *acquisition) callOff() {
	req := driver.ReleaseRequest{Name: a.req.Name, LeaseID: a.req.LeaseID, Cancel: true}
	limit := max(a.req.TTL, driver.TombstoneTTL)
	a.client.releaseInBackground(req, limit)
}

// releaseInBackground repeats req until the store has answered. It gives up
// after limit, when the lease has ended by itself, or when Close does.
//
// The goroutine must not use the caller's context, because most often it is
// the end of that context that brings us here.
func (c *Client) releaseInBackground(req driver.ReleaseRequest, limit time.Duration) {
	c.spawn(func(background context.Context) {
		ctx, cancel := context.WithTimeout(background, limit)
		defer cancel()
		var backoff backoff
		for {
			err := c.releaseOnce(ctx, req)
			switch {
			case err == nil, errors.Is(err, ErrLost):
				return
			case permanent(err), !backoff.sleep(ctx):
				c.opts.Observer(Event{Kind: CleanupFailed, Name: req.Name, LeaseID: req.LeaseID, Err: err})
				return
			}
		}
	})
}

// releaseOnce sends one release request.
func (c *Client) releaseOnce(ctx context.Context, req driver.ReleaseRequest) error {
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	if err := c.engine.Release(ctx, req); err != nil {
		return effective(ctx, err)
	}
	return nil
}
