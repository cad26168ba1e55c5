package holdfast

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Acquire takes the lock and returns its lease, waiting until ctx ends or for
// AcquireOptions.Wait. While it waits it rides out a store that does not
// answer, and the Observer is told when that begins and ends. If there is no Wait,
// and the store has not answered once, it gives up after about
// Options.RequestTimeout.
//
// Where the store keeps no queue, it lets others go first for up to 250 ms if
// this client has released the lock just before, and they want it, or may.
//
// Without a lease it returns a *HeldError (ErrHeld) when Wait is over, or
// ErrUnavailable if the store does not answer by then; ErrDeadlock at once when ctx
// holds the lock already, or another error of this package. When ctx has ended the
// error is that of ctx, and tells the same: it is also a *HeldError if somebody has
// the lock, or ErrUnavailable if the store does not answer. In each case nothing is left behind: a request whose outcome
// is unknown is cancelled in the background, and Close waits for that.
//
// If the lock is handed over by another holder, the lease lasts for a few seconds
// at first; see AcquireOptions.WholeTTL.
//
// The lease's life is separate from ctx: it lasts, kept alive in the
// background, until the caller calls Release, which it must do even if the
// lease is lost.
func (c *Client) Acquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	return c.acquire(ctx, name, opts, true)
}

// TryAcquire is Acquire without waiting: if somebody else has the lock it
// returns at once a *HeldError that says who, and for how long. A store that does
// not answer is ErrUnavailable, after about Options.RequestTimeout at most.
func (c *Client) TryAcquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	return c.acquire(ctx, name, opts, false)
}

func (c *Client) acquire(ctx context.Context, name string, opts *AcquireOptions, wait bool) (*Lease, error) {
	var w waiter // mostly on the stack
	if err := c.prepare(ctx, &w.acquisition, name, opts, wait); err != nil {
		return nil, opError("acquire", name, err)
	}
	lease, err := w.run(ctx, wait)
	return lease, opError("acquire", name, err)
}

// An acquisition is one call of Acquire or TryAcquire under way. Only its
// caller's goroutine uses it.
type acquisition struct {
	client *Client
	opts   AcquireOptions
	req    driver.AcquireRequest
	values context.Context // the caller's context
	outer  *Lease          // innermost lease of the caller's context, or nil
	began  time.Time

	uncertain bool            // a request of the present lease ID may have been carried out unseen
	blocker   *driver.Blocker // the store's last answer of Held, or nil
	blockedAt time.Time       // when it came
	queued    instant         // when the last request was sent that was answered with a place; zero if none was
	record    []byte          // the result of do-once work that is done already, with errRecorded

	failures     int       // requests without a useful answer since the last useful one
	failingSince time.Time // when the first of them was sent
	failure      error     // why the last of them failed, if that is known
	outage       bool      // that is so long ago that OnWait knows

	// What the Observer knows; see observe.go.
	key       LeaseID // of all that is told of the acquire, and of its lease
	sent      int     // requests
	handed    bool    // the lock was handed over to it, as far as we know
	waited    bool    // it has begun to wait, which the Observer may have missed
	waiting   bool    // it waits, and the Observer knows
	place     int     // the Observer knows
	suffering bool    // the Observer knows that the store does not answer
}

// prepare begins an acquisition: it checks the arguments, and whether an acquire that
// waits could wait for ever. It sends nothing.
func (c *Client) prepare(ctx context.Context, a *acquisition, name string, opts *AcquireOptions, wait bool) error {
	if err := c.fill(ctx, a, name, opts); err != nil {
		return err
	}
	return a.checkNesting(wait)
}

// fill checks the arguments, and makes an acquisition of them.
func (c *Client) fill(ctx context.Context, a *acquisition, name string, opts *AcquireOptions) error {
	if err := c.checkName(name); err != nil {
		return err
	}
	o, err := opts.resolve(&c.opts)
	if err != nil {
		return err
	}
	holder, err := c.holderFor(&o)
	if err != nil {
		return err
	}
	*a = acquisition{client: c, opts: o, values: ctx, outer: heldUnder(ctx), began: time.Now()}
	a.req = driver.AcquireRequest{
		Name: name, LeaseID: driver.NewLeaseID(), Mode: o.Mode, Limit: o.Limit, Permits: o.Permits,
		TTL: o.TTL + o.LockDelay, Holder: holder, MinToken: o.MinToken, Replicas: o.Replicas,
	}
	a.key = a.req.LeaseID
	capable := c.features.Capabilities
	err = driver.CheckTTL(capable, "MinHold", o.MinHold)
	if err == nil && o.LockDelay > 0 {
		err = driver.CheckTTL(capable, "TTL with LockDelay", a.req.TTL)
	}
	return cmp.Or(err, driver.CheckSupport(capable, a.req))
}

// run makes attempts until one is decisive. Without a lease it leaves nothing
// behind.
func (w *waiter) run(ctx context.Context, wait bool) (*Lease, error) {
	w.client.started() // Close ends us, and waits for what we clean up
	defer w.client.finished()
	asked := ctx
	if w.waits = wait; wait && w.opts.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, w.waitEnd(), errWaitOver)
		defer cancel()
	}
	returned := false
	defer func() {
		if !returned { // OnWait has panicked, or ended the goroutine
			w.abandon()
			w.tellRefused(errAbandoned)
		}
	}()
	lease, err := w.attempts(asked, ctx)
	returned = true
	if err == nil && w.client.isClosed() {
		_ = lease.Release(ctx) // goes on in the background where it fails
		err = ErrClosed
	}
	if err != nil {
		w.abandon()
		if err != errRecorded { // of which the caller makes more
			w.tellRefused(err)
		}
		return nil, err
	}
	w.tellAcquired(lease)
	return lease, nil
}

// errAbandoned is why an acquire has no lease that has not come to its end.
var errAbandoned = errors.New("OnWait has panicked, or ended the goroutine")

// final reports whether another attempt would end in the same way: because the
// store says so, or by our own verdict on what it has answered.
func final(err error) bool {
	for _, verdict := range []error{errRecorded, ErrFingerprint, ErrNotReplicated} {
		if errors.Is(err, verdict) {
			return true
		}
	}
	return driver.Permanent(err)
}

// attempts makes the first attempt under asked, so that it has the request
// timeout however short the wait is, and all others under ctx, which ends with
// the wait.
func (w *waiter) attempts(asked, ctx context.Context) (*Lease, error) {
	if w.waits {
		w.ask()
		defer w.stop()
		if err := w.sleep(asked, w.courtesy(ctx)); err != nil {
			return nil, w.ended(asked)
		}
	}
	if !w.tried.IsZero() { // with other names, and the store has not answered
		asked = ctx
	}
	for {
		lease, err := w.attempt(asked)
		asked = ctx
		if w.waits && errors.Is(err, ErrHeld) {
			w.tellWaiting(err)
			w.tellState()
		}
		switch {
		case lease != nil:
			return lease, nil
		case ctx.Err() != nil && !final(err):
			return nil, w.ended(ctx)
		case errors.Is(err, ErrHeld):
			if !w.waits {
				return nil, err
			}
		case final(err), !w.mayRetry(err):
			return nil, err
		}
		lease, err = w.pause(ctx)
		switch {
		case lease != nil:
			return lease, nil
		case err != nil:
			return nil, w.ended(ctx)
		}
	}
}

// newTerm returns the term of the lease that is asked for, to be begun.
func (a *acquisition) newTerm() term { return newTerm(&a.opts, max(a.req.TTL, a.req.WaiterTTL)) }

// failed notes a request without an answer and classifies its error.
func (a *acquisition) failed(sent time.Time, ctx context.Context, err error) error {
	if !driver.Definite(err) {
		a.uncertain = true
	}
	a.countFailure(sent)
	return ask.Harmless(ctx, err)
}

// abandon leaves nothing behind in the store: neither a lease that was granted
// unseen nor a place.
func (a *acquisition) abandon() {
	if a.uncertain || !a.queued.mono.IsZero() {
		a.cancelRequest()
		a.uncertain, a.queued = false, instant{}
	}
}
