package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// cancelRequest makes sure, in the background, that no request of the present lease ID leaves a
// lease in the store. The store releases a lease that it has granted, and keeps a tombstone for
// a request that is still under way. INVARIANT I5.
func (a *acquisition) cancelRequest() {
	req := driver.ReleaseRequest{Name: a.req.Name, LeaseID: a.req.LeaseID, Cancel: true}
	failed := a.event(CleanupFailed, nil)
	a.client.releaseInBackground(func() driver.ReleaseRequest { return req }, a.newTerm().repeatUntil(time.Now(), true), failed)
}

// releaseInBackground runs repeatRelease on a goroutine of its own. It does not use the caller's
// context, which usually has ended by now.
func (c *Client) releaseInBackground(request func() driver.ReleaseRequest, until time.Time, failed Event) {
	c.spawn(func(background context.Context) { c.repeatRelease(background, request, until, failed) })
}

// repeatRelease sends a release until the store has answered. It gives up at until, when the
// lease has expired, or when Close gives up. It then sends the event failed to the Observer.
func (c *Client) repeatRelease(background context.Context, request func() driver.ReleaseRequest, until time.Time, failed Event) {
	ctx, cancel := ask.LimitUntil(background, until)
	defer cancel()
	// The connection of the first request may be dead, so the second follows soon, on another.
	// Each later request has the whole timeout, because the store may be slow. INVARIANT I9.
	limit := c.opts.RequestTimeout / ask.Tries
	f := ask.UntilEnd(ctx, c.opts.RequestTimeout, func(ctx context.Context) error {
		ctx, cancel := ask.Limit(ctx, limit)
		defer cancel()
		limit = c.opts.RequestTimeout
		return c.engine.Release(ctx, request())
	})
	if f != nil && !f.Lost() {
		c.tellCleanupFailed(failed, f.Effective())
	}
}
