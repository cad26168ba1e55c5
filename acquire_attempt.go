package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// attempt sends one request, or two if the first lease ID is spent. If it returns ErrHeld, it
// has set a.blocker.
func (a *acquisition) attempt(ctx context.Context) (*Lease, error) {
	if a.client.isClosed() {
		return nil, ErrClosed
	}
	sent := a.client.now()
	ctx, cancel := ask.LimitUntil(ctx, sent.Mono.Add(a.client.opts.RequestTimeout))
	defer cancel()
	var reply driver.AcquireReply
	var err error
	for again := false; ; again = true {
		a.wait.Tried = sent.Mono
		a.report.sent++
		// INVARIANT I3: the clock starts, at sent, before the first byte is written.
		reply, err = a.client.engine.Acquire(ctx, a.req)
		if again || err != nil || reply.Outcome != driver.Spent {
			break
		}
		a.startOver()
		sent = a.client.now()
	}
	if err != nil {
		err = a.failed(sent.Mono, ctx, err)
		a.suffer(err)
		return nil, err
	}
	switch reply.Outcome {
	case driver.Granted:
		return a.granted(sent, reply)
	case driver.Held:
		a.answered()
		a.blocked(reply.Blocker, time.Now())
		if reply.Place > 0 {
			a.queued = sent
		}
		if a.waits {
			a.client.turns.Refused(a.req.Name)
		}
		if a.req.Once { // do not wait for the result of another request
			if err := compareFingerprints(reply.Holder.Fingerprint, a.req.Holder.Fingerprint); err != nil {
				return nil, err
			}
		}
		return nil, ErrHeld
	case driver.Recorded:
		a.record = reply.Record
		return nil, errRecorded
	case driver.Spent:
		a.startOver()
		a.countFailure(sent.Mono)
		return nil, fmt.Errorf("%w: it grants neither of two lease IDs", ErrUnavailable)
	}
	return nil, fmt.Errorf("%w: the request was cancelled", ErrLost)
}

// errRecorded means that the request has Once set, and the name has a record.
var errRecorded = errors.New("the name has a record")

// granted makes the lease. It returns an error if too few replicas have acknowledged the lease,
// or if the reply came too late.
func (a *acquisition) granted(sent instant, reply driver.AcquireReply) (*Lease, error) {
	if reply.Acked < a.req.Replicas {
		a.uncertain = true // so that abandon cancels the lease
		return nil, fmt.Errorf("%w: %d of %d replicas have acknowledged the lease", ErrNotReplicated, reply.Acked, a.req.Replicas)
	}
	now := a.client.now()
	t, ok := a.newTerm().granted(sent, now, a.client.leases.pace())
	if !ok {
		took := now.Mono.Sub(sent.Mono)
		a.startOver() // the store may still have the lease
		a.countFailure(sent.Mono)
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, lockinfo.Span(took), a.opts.TTL)
	}
	a.answered()
	l, ahead := a.client.newLease(a, reply.Token, reply.Acked, t)
	if ahead != nil {
		a.overtaken(ahead)
		return nil, ErrHeld
	}
	return l, nil
}

// handedOver returns the lease that the store has handed over, or nil if another attempt is
// needed.
//
// The lease lasts only as long as the place would; the keep-alive soon requests the whole TTL.
func (a *acquisition) handedOver(token uint64) *Lease {
	a.report.handed = true
	t, ok := a.newTerm().handedOver(a.queued, a.client.now(), a.req.WaiterTTL, a.client.leases.pace())
	switch {
	case a.opts.WholeTTL || a.opts.LockDelay > 0 || a.req.Replicas > 0:
		// WholeTTL needs the whole TTL, LockDelay must apply even if this process dies at
		// once, and the replicas must acknowledge the lease. So repeat the request, which
		// gets the whole lease. If the lease has ended by then, the repeat gets a place in
		// the queue; a late notice of this grant then only causes another repeat.
		return nil
	case !ok:
		a.startOver() // the store may still have the lease
		return nil
	}
	a.answered()
	l, ahead := a.client.newLease(a, token, 0, t)
	if ahead != nil {
		a.overtaken(ahead)
	}
	return l
}

// found is handedOver for a reply of the store instead of a notice. If the last reply about the
// place is so old that the lease may not be trusted, found returns nil, for another attempt.
func (a *acquisition) found(token uint64) *Lease {
	if placeOver(a.queued, a.client.now(), a.req.WaiterTTL) {
		a.uncertain = true // a notice may be about this grant, while the next attempt gets another
		return nil
	}
	return a.handedOver(token)
}

// overtaken drops a grant because this client has a lease of the name with a greater token:
// either the reply was late, and the granted lease has ended, or the store has lost its token
// counter. The acquisition then waits for the lease ahead.
func (a *acquisition) overtaken(ahead *Lease) {
	a.startOver() // the store may still have the lease
	a.answered()
	a.blocked(driver.Blocker{Holder: *ahead.holder, ExpiresIn: ahead.Remaining()}, time.Now())
}

// startOver cancels the present lease ID and draws another for the next attempt: a late notice
// about the old ID then does not match, and cancelling the old ID leaves the new one alone.
func (a *acquisition) startOver() {
	a.cancelRequest()
	a.req.LeaseID, a.uncertain, a.queued, a.report.handed = lockinfo.NewLeaseID(), false, instant{}, false
	a.wait.Rewatch(a.req.LeaseID)
}

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
