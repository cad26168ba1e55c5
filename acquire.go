package holdfast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Acquire takes the lock and returns its lease, waiting until ctx ends or for
// AcquireOptions.Wait. While it waits it rides out a store that does not
// answer; a store that fails from the start ends it after about
// Options.RequestTimeout.
//
// Without a lease it returns a *HeldError (ErrHeld) when Wait is over, ctx's
// error when ctx has ended, ErrDeadlock at once when ctx holds the lock
// already, or another error of this package. In each case nothing stays
// behind: a request whose outcome is unknown is called off in the background,
// and Close waits for that.
//
// The lease's life is separate from ctx: it lasts, kept alive in the
// background, until the caller calls Release, which it must do also if the
// lease is lost.
func (c *Client) Acquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	return c.acquire(ctx, name, opts, true)
}

// TryAcquire is Acquire without waiting: if somebody else has the lock it
// returns at once a *HeldError that says who, and for how long.
func (c *Client) TryAcquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	return c.acquire(ctx, name, opts, false)
}

func (c *Client) acquire(ctx context.Context, name string, opts *AcquireOptions, wait bool) (*Lease, error) {
	a, err := c.newAcquisition(ctx, name, opts)
	if err != nil {
		return nil, opError("acquire", name, err)
	}
	lease, err := a.run(ctx, wait)
	if err != nil {
		a.abandon()
		c.opts.Observer(Event{Kind: Refused, Name: name, LeaseID: a.req.LeaseID, Took: time.Since(a.began), Err: err})
		return nil, opError("acquire", name, err)
	}
	c.opts.Observer(Event{Kind: Acquired, Name: name, LeaseID: lease.id, Token: lease.token, Took: time.Since(a.began)})
	return lease, nil
}

// An acquisition is one call of Acquire or TryAcquire under way. Only its
// caller's goroutine uses it.
type acquisition struct {
	client *Client
	opts   AcquireOptions
	req    driver.AcquireRequest
	values context.Context // the caller's context without its end
	outer  *Lease          // innermost lease of the caller's context, or nil
	began  time.Time

	uncertain    bool             // a request of the present lease ID may have been carried out unseen
	inTheWay     *driver.InTheWay // the store's last answer of Held, or nil
	failures     int              // requests without a useful answer since the last useful one
	failingSince time.Time        // when the first of them was sent
}

// newAcquisition checks the arguments. It sends nothing.
func (c *Client) newAcquisition(ctx context.Context, name string, opts *AcquireOptions) (*acquisition, error) {
	if err := driver.CheckName(name); err != nil {
		return nil, err
	}
	o, err := opts.resolve(&c.opts)
	if err != nil {
		return nil, err
	}
	holder := c.opts.Holder
	holder.Reason, holder.Labels = o.Reason, maps.Clone(o.Labels)
	if err := checkHolder(holder); err != nil {
		return nil, err
	}
	a := &acquisition{client: c, opts: o, values: context.WithoutCancel(ctx), outer: heldUnder(ctx), began: time.Now()}
	if a.outer.holds(c.engine, name, o.Mode) {
		return nil, ErrDeadlock
	}
	a.req = driver.AcquireRequest{
		Name: name, LeaseID: driver.NewLeaseID(), Mode: o.Mode, Limit: o.Limit,
		TTL: o.TTL + o.LockDelay, Holder: holder, MinToken: o.MinToken,
	}
	return a, driver.CheckSupport(c.engine.Capabilities(), a.req)
}

// run makes attempts until one is decisive.
func (a *acquisition) run(ctx context.Context, wait bool) (*Lease, error) {
	if wait && a.opts.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.opts.Wait, errWaitOver)
		defer cancel()
	}
	w := waiter{acquisition: a}
	defer w.stop()
	for {
		lease, err := a.attempt(ctx)
		switch {
		case lease != nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, a.ended(ctx)
		case errors.Is(err, ErrHeld):
			if !wait {
				return nil, err
			}
		case permanent(err), !a.mayRetry(err, wait):
			return nil, err
		}
		if err := w.pause(ctx); err != nil {
			return nil, a.ended(ctx)
		}
	}
}

// attempt sends one request.
func (a *acquisition) attempt(ctx context.Context) (*Lease, error) {
	if a.client.isClosed() {
		return nil, ErrClosed
	}
	ctx, cancel := a.client.requestContext(ctx)
	defer cancel()
	// INVARIANT I3: the clock starts before the first byte is written.
	sent := a.client.now()
	reply, err := a.client.engine.Acquire(ctx, a.req)
	if err != nil {
		return nil, a.failed(sent.mono, ctx, err)
	}
	switch reply.Outcome {
	case driver.Granted:
		return a.granted(sent, reply.Token)
	case driver.Held:
		a.inTheWay, a.failures = &reply.InTheWay, 0
		return nil, a.heldError(0)
	}
	return nil, fmt.Errorf("%w: the request was called off", ErrLost)
}

// granted makes the lease, unless the answer came too late to be of use.
func (a *acquisition) granted(sent instant, token uint64) (*Lease, error) {
	now := a.client.now()
	if now.reached(sent.add(trusted(a.opts.TTL))) {
		took := now.mono.Sub(sent.mono)
		a.uncertain = true // the store may still hold the lease for us
		a.callOff()
		a.req.LeaseID = driver.NewLeaseID()
		a.countFailure(sent.mono)
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, round(took), a.opts.TTL)
	}
	return a.client.newLease(a, sent, token), nil
}

// failed notes a request without an answer and classifies its error.
func (a *acquisition) failed(sent time.Time, ctx context.Context, err error) error {
	if !certain(err) {
		a.uncertain = true
	}
	a.countFailure(sent)
	return harmless(ctx, err)
}

func (a *acquisition) countFailure(sent time.Time) {
	if a.failures++; a.failures == 1 {
		a.failingSince = sent
	}
}

// mayRetry decides whether a failed request is repeated. A caller who waits
// behind a holder rides out an outage of the store; one who has not heard
// from the store yet gives up after the request timeout; one who does not
// want to wait repeats only what may have been carried out unseen.
func (a *acquisition) mayRetry(err error, wait bool) bool {
	if wait && a.inTheWay != nil {
		return true
	}
	if !wait && !a.uncertain && errors.Is(err, ErrUnavailable) {
		return false
	}
	return time.Since(a.failingSince) < a.client.opts.RequestTimeout
}

// errWaitOver is the cause of the end of AcquireOptions.Wait.
var errWaitOver = errors.New("the wait is over")

// ended explains why the wait ended without a lease.
func (a *acquisition) ended(ctx context.Context) error {
	if context.Cause(ctx) != errWaitOver {
		return contextError(ctx)
	}
	if a.inTheWay == nil {
		return fmt.Errorf("%w: no answer within %s", ErrUnavailable, a.opts.Wait)
	}
	return a.heldError(time.Since(a.began))
}

func (a *acquisition) heldError(waited time.Duration) error {
	return &HeldError{Holder: a.inTheWay.Holder, ExpiresIn: a.inTheWay.ExpiresIn, Waited: waited}
}

// abandon leaves nothing behind in the store.
func (a *acquisition) abandon() {
	if a.uncertain || a.req.Queue {
		a.callOff()
	}
}
