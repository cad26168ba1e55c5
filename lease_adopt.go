package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// AdoptOptions are the options of a lease from its adoption on. Nil is
// default; a zero field is default.
type AdoptOptions struct {
	// TTL is how long the lease lasts from now on, at least. A longer lease is
	// not shortened, but the client trusts it for TTL only. Renewals have the
	// same TTL. Default: Options.TTL.
	TTL time.Duration

	// KeepAlive, StallAfter and LockDelay are as in AcquireOptions, and so are MinHold
	// and MaxHold, which count from the adoption.
	KeepAlive  KeepAlive
	MinHold    time.Duration
	MaxHold    time.Duration
	StallAfter time.Duration
	LockDelay  time.Duration
}

// acquireOptions returns the options as those of an acquire of the lease of h.
func (o *AdoptOptions) acquireOptions(h Handle) *AcquireOptions {
	o = cmp.Or(o, &AdoptOptions{})
	return &AcquireOptions{
		Mode: h.mode, TTL: o.TTL, KeepAlive: o.KeepAlive,
		MinHold: o.MinHold, MaxHold: o.MaxHold, StallAfter: o.StallAfter, LockDelay: o.LockDelay,
	}
}

// Adopt takes over a live lease by its Handle: one that was left with Lease.Leave, in
// this process or another, or whose process has ended. The previous holder must not use
// it any more, because the store cannot distinguish two users of one lease ID. The mode
// and the token come from the Handle, not from the store.
//
// Adopt extends the lease first, by a request that is repeated for
// Options.RequestTimeout, so that its deadline counts from a request of this
// client. From then on it is a lease like any other, with the same fencing token,
// which the caller must Release. Its Context carries the values of ctx, and
// Lease.Holder is the holder of this client, though the store goes on naming the client
// that acquired it. It never waits for the lock, so it is never ErrDeadlock.
//
// It returns ErrLost if the lease is not live, or if this client has a later one
// of the name, with a greater token, and ErrInvalid if it has this very lease, or another
// call is adopting it. Then,
// and on any other error, only the expiry of the lease may have changed: after
// ErrOutcomeUnknown it may have been extended. Adopt may be called again.
func (c *Client) Adopt(ctx context.Context, handle Handle, opts *AdoptOptions) (*Lease, error) {
	var a acquisition
	if err := c.prepareAdoption(ctx, &a, handle, opts); err != nil {
		return nil, opError("adopt", handle.name, err)
	}
	c.started() // as in run
	defer c.finished()
	l, err := a.adopt(ctx, handle.token)
	if err != nil {
		a.tellRefused(err)
	}
	return l, opError("adopt", handle.name, err)
}

// prepareAdoption checks the arguments. It sends nothing.
func (c *Client) prepareAdoption(ctx context.Context, a *acquisition, handle Handle, opts *AdoptOptions) error {
	if err := cmp.Or(c.check(), handle.check()); err != nil {
		return err
	}
	if err := c.fill(ctx, a, handle.name, opts.acquireOptions(handle)); err != nil {
		return err
	}
	// An acquire request of this ID may still be under way. Being uncertain makes the release
	// leave a tombstone for it. INVARIANT I5.
	a.req.LeaseID, a.uncertain = handle.id, true
	if a.report.key = handle.id; c.events.On() {
		a.report.key = lockinfo.NewLeaseID() // if this client has left the lease, it has used the ID as a key
	}
	return nil
}

// adopt extends the lease, makes it this client's, and sends Acquired to the Observer. On an
// error the caller must send Refused.
func (a *acquisition) adopt(ctx context.Context, token uint64) (*Lease, error) {
	c, id := a.client, a.req.LeaseID
	if c.isClosed() {
		return nil, ErrClosed
	}
	_, twice := c.adoptions.LoadOrStore(id, nil)
	if !twice {
		defer c.adoptions.Delete(id)
	}
	if twice || slices.ContainsFunc(c.leases.named(a.req.Name), func(l *Lease) bool { return l.id == id }) {
		return nil, fmt.Errorf("%w Handle: this client has the lease already, or is adopting it", ErrInvalid)
	}
	var sent instant
	f := ask.Until(ctx, c.opts.RequestTimeout, func(ctx context.Context) error {
		// INVARIANT I3: the deadline counts from before the request that was answered,
		// and not from a request of the previous holder.
		sent = c.now()
		return c.engine.Extend(ctx, []driver.ExtendRequest{{Name: a.req.Name, LeaseID: id, TTL: a.req.TTL}})[0]
	})
	if f.Lost() {
		l := &Lease{client: c, name: a.req.Name, id: id}
		return nil, l.whyGone(ctx)
	}
	if err := f.Effective(); err != nil {
		return nil, err
	}
	now := c.now()
	t, ok := a.newTerm().granted(sent, now, c.leases.pace())
	if !ok {
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, lockinfo.Span(now.Mono.Sub(sent.Mono)), a.opts.TTL)
	}
	l, ahead := c.newLease(a, token, 0, t)
	if ahead != nil {
		return nil, errOvertaken
	}
	if c.isClosed() {
		if _, err := l.Leave(); err == nil {
			return nil, ErrClosed
		} // otherwise Close has seen the lease, and releases it
	}
	a.tellAcquired(l)
	return l, nil
}
