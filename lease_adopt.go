package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// AdoptOptions say of which kind the lease is that Adopt takes over, which a store
// does not tell of a lease ID, and how it is held from now on. A zero field is
// default, but for Token.
type AdoptOptions struct {
	// Token is the fencing token of the lease: that of Lease.Token where it was
	// acquired. It is required.
	Token uint64

	// Mode, Limit and Permits are those of the lease.
	Mode    Mode
	Limit   int
	Permits int

	// TTL is for how long the lease lasts from now on, at least: one that lasts
	// longer is not shortened, though it is trusted for no longer. It is also what
	// renewals ask for. Default: Options.TTL.
	TTL time.Duration

	// KeepAlive, Progress and LockDelay are as in AcquireOptions, and so are MinHold
	// and MaxHold, which count from the adoption.
	KeepAlive KeepAlive
	MinHold   time.Duration
	MaxHold   time.Duration
	Progress  time.Duration
	LockDelay time.Duration
}

// acquireOptions returns what an acquire would be given for such a lease.
func (o *AdoptOptions) acquireOptions() *AcquireOptions {
	return &AcquireOptions{
		Mode: o.Mode, Limit: o.Limit, Permits: o.Permits, TTL: o.TTL, KeepAlive: o.KeepAlive,
		MinHold: o.MinHold, MaxHold: o.MaxHold, Progress: o.Progress, LockDelay: o.LockDelay,
	}
}

// Adopt takes over a live lease by its lease ID: one that was left with Lease.Leave,
// in this process or another, or whose process has ended. Whoever had it must not
// use it any more: the store cannot tell two apart that show the same lease ID.
//
// Adopt extends the lease first, by a request that is repeated for
// Options.RequestTimeout, so that its deadline counts from a request of this
// client. From then on it is a lease like any other, with the same fencing token,
// which the caller must Release. Its Context carries the values of ctx, and
// Lease.Holder is that of this client, though the store goes on naming whoever
// acquired it. It does not wait for anybody, so that it is never ErrDeadlock.
//
// It returns ErrLost if the lease is not live, or if this client has a later one
// of the name, with a greater token, and ErrInvalid if it has this very lease. Then,
// and on any other error, the lease is left as it was, but for its expiry: after
// ErrOutcomeUnknown it may have been extended. Adopt may be called again.
func (c *Client) Adopt(ctx context.Context, name string, leaseID LeaseID, opts *AdoptOptions) (*Lease, error) {
	var a acquisition
	if err := c.prepareAdoption(ctx, &a, name, leaseID, opts); err != nil {
		return nil, opError("adopt", name, err)
	}
	c.started() // as in run
	defer c.finished()
	l, err := a.adopt(ctx, opts.Token)
	if err != nil {
		a.tellRefused(err)
		return nil, opError("adopt", name, err)
	}
	a.tellAcquired(l)
	return l, nil
}

// prepareAdoption checks the arguments. It sends nothing.
func (c *Client) prepareAdoption(ctx context.Context, a *acquisition, name string, leaseID LeaseID, opts *AdoptOptions) error {
	switch {
	case !leaseID.Valid(): // which is not shown: it may be one that was mistyped
		return fmt.Errorf("%w lease ID: want 32 hexadecimal digits", ErrInvalid)
	case opts == nil || opts.Token == 0 || opts.Token > driver.MaxToken:
		return fmt.Errorf("%w Token: want the fencing token of the lease, which the store does not tell", ErrInvalid)
	}
	if err := c.fill(ctx, a, name, opts.acquireOptions()); err != nil {
		return err
	}
	// An acquire request of this ID may still be under way, for all that we know:
	// the release rules out that it is granted. INVARIANT I5.
	a.req.LeaseID, a.uncertain = leaseID, true
	if a.key = leaseID; c.events.On() {
		a.key = driver.NewLeaseID() // the lease may have been told of, and left, by this client
	}
	for _, l := range c.leases.named(name) {
		if l.id == leaseID {
			return fmt.Errorf("%w lease ID: this client has the lease already", ErrInvalid)
		}
	}
	return nil
}

// adopt extends the lease, and makes it one of ours.
func (a *acquisition) adopt(ctx context.Context, token uint64) (*Lease, error) {
	c := a.client
	if c.isClosed() {
		return nil, ErrClosed
	}
	var sent instant
	f := ask.Until(ctx, c.opts.RequestTimeout, func(ctx context.Context) error {
		// INVARIANT I3: the deadline counts from before the request that was
		// answered, and not from one of whoever had the lease before.
		sent = c.now()
		return c.engine.Extend(ctx, []driver.ExtendRequest{{Name: a.req.Name, LeaseID: a.req.LeaseID, TTL: a.req.TTL}})[0]
	})
	if f.Lost() {
		q := inquiry{client: c}
		return nil, q.cause(ctx, &Lease{name: a.req.Name, id: a.req.LeaseID})
	}
	if err := f.Effective(); err != nil {
		return nil, err
	}
	now := c.now()
	t, ok := a.newTerm().granted(sent, now, c.leases.pace())
	if !ok {
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, driver.Span(now.mono.Sub(sent.mono)), a.opts.TTL)
	}
	l, ahead := c.newLease(a, token, 0, t)
	if ahead != nil {
		return nil, errOvertaken
	}
	if c.isClosed() { // and may not have seen the lease
		_ = l.Leave()
		return nil, ErrClosed
	}
	return l, nil
}
