package holdfast

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/wait"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Acquire takes the lock and returns its lease, waiting until ctx ends or for
// AcquireOptions.MaxWait. While it waits it keeps trying if the store stops answering; the
// Observer receives the beginning and the end of such an outage. If there is no MaxWait,
// and the store has not answered once, it gives up after about
// Options.RequestTimeout.
//
// Where the store keeps no queue, Acquire lets other clients go first, for up
// to 250 ms, if this client has just released the lock and others may want it.
//
// Without a lease it returns a *HeldError (ErrHeld) when MaxWait ends, or
// ErrUnavailable if the store does not answer by then or, without a MaxWait, if it has not
// answered at all for Options.RequestTimeout; ErrDeadlock at once when ctx
// holds the lock already, or another error of this package. When ctx has ended the
// error wraps ctx's. It is then also a *HeldError if somebody has
// the lock, or ErrUnavailable if the store does not answer. In each case no lease is left
// in the store: a request whose outcome is unknown is cancelled in the background, and Close
// waits for that.
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
// returns at once a *HeldError with the holder and the time left. A store that does
// not answer is ErrUnavailable, after about Options.RequestTimeout at most.
func (c *Client) TryAcquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	return c.acquire(ctx, name, opts, false)
}

func (c *Client) acquire(ctx context.Context, name string, opts *AcquireOptions, waits bool) (*Lease, error) {
	var a acquisition // mostly on the stack
	if err := c.prepare(ctx, &a, name, opts, waits); err != nil {
		return nil, opError("acquire", name, err)
	}
	a.joins = waits && a.mayJoin()
	lease, err := a.run(ctx)
	return lease, opError("acquire", name, err)
}

// An acquisition is one call of Acquire or TryAcquire under way: it sends requests, and
// waits between them. Only its caller's goroutine uses it.
type acquisition struct {
	client *Client
	opts   AcquireOptions
	req    driver.AcquireRequest
	values context.Context // the caller's context
	outer  *Lease          // innermost lease of the caller's context, or nil
	began  time.Time
	waits  bool    // and does not only try
	joins  bool    // it takes part in a cohort
	leads  *cohort // it requests the lock for this cohort; nil if for itself only
	wait   wait.Waiter[instant]

	uncertain bool            // a request of the present lease ID may have been carried out unseen
	blocker   *driver.Blocker // the store's last answer of Held, or nil
	blockedAt time.Time       // when it came
	queued    instant         // when the last request was sent that was answered with a place; zero if none was
	record    []byte          // the result of do-once work that is done already, with errRecorded

	failing failing
	report  report
}

// failing is the present series of requests without a useful answer.
type failing struct {
	requests int
	since    time.Time // when the first of them was sent
	err      error     // of the last of them, if it is known
	outage   bool      // it is so long that OnWait knows
}

// A report is what an acquisition keeps for the Observer and OnWait; see observe.go.
type report struct {
	key     LeaseID    // of all events of the acquire, and of its lease
	sent    int        // requests
	handed  bool       // the lock was handed over to it, as far as we know
	waited  bool       // it has begun to wait, which the Observer may have missed
	waiting bool       // it waits, and the Observer knows
	place   int        // the Observer knows
	outage  bool       // the Observer knows that the store does not answer
	state   *WaitState // OnWait knows; nil if nothing
}

// prepare begins an acquisition: it checks the arguments, and whether an acquire that
// waits could wait for ever. It sends nothing.
func (c *Client) prepare(ctx context.Context, a *acquisition, name string, opts *AcquireOptions, waits bool) error {
	if err := c.fill(ctx, a, name, opts); err != nil {
		return err
	}
	a.waits = waits
	return a.checkNesting()
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
		Name: name, LeaseID: lockinfo.NewLeaseID(), Mode: o.Mode,
		TTL: o.TTL + o.LockDelay, Holder: holder, MinToken: o.MinToken, Replicas: o.Replicas,
	}
	a.report.key = a.req.LeaseID
	capable := c.features.Capabilities
	err = driver.CheckTTL(capable, "MinHold", o.MinHold)
	if err == nil && o.LockDelay > 0 {
		err = driver.CheckTTL(capable, "TTL with LockDelay", a.req.TTL)
	}
	return cmp.Or(err, driver.CheckSupport(capable, a.req))
}

// run makes attempts until one is decisive. Without a lease it leaves nothing
// in the store.
func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	a.client.started() // Close ends us, and waits for our clean-ups
	defer a.client.finished()
	asked := ctx
	a.wait.Places, a.wait.Closing = &a.client.places, a.client.closing
	if a.waits && a.opts.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, a.waitEnd(), errWaitOver)
		defer cancel()
	}
	returned := false
	defer func() {
		if !returned { // OnWait has panicked, or ended the goroutine
			a.abandon()
			a.tellRefused(errAbandoned)
		}
	}()
	lease, err := a.attempts(asked, ctx)
	returned = true
	if err == nil && a.client.isClosed() {
		_ = lease.Release(ctx) // goes on in the background where it fails
		err = ErrClosed
	}
	if err != nil {
		a.abandon()
		if err != errRecorded { // of which the caller makes more
			a.tellRefused(err)
		}
		return nil, err
	}
	a.tellAcquired(lease)
	return lease, nil
}

// errAbandoned is the error of an acquire that did not run to its end.
var errAbandoned = errors.New("OnWait has panicked, or ended the goroutine")

// final reports whether another attempt would end in the same way: because of the store's
// answer, or of the client's own check of it.
func final(err error) bool {
	return err == errRecorded || errors.Is(err, ErrFingerprint) || errors.Is(err, ErrNotReplicated) || driver.Permanent(err)
}

// attempts makes the first attempt under asked, so that it has the request
// timeout however short the wait is, and all others under ctx, which ends with
// the wait.
func (a *acquisition) attempts(asked, ctx context.Context) (lease *Lease, err error) {
	if a.joins {
		if lease, err = a.follow(ctx); lease != nil || err != nil {
			return lease, err
		}
		defer func() { a.endLead(ctx, lease, err) }()
	}
	if a.waits {
		a.wait.Enter(&a.req, a.opts.TTL)
		defer a.wait.Stop()
		if err := a.wait.Sleep(asked, a.courtesy(ctx)); err != nil {
			return nil, a.ended(asked)
		}
	}
	if !a.wait.Tried.IsZero() { // with other names, and the store has not answered
		asked = ctx
	}
	for {
		lease, err := a.attempt(asked)
		asked = ctx
		if a.waits && err == ErrHeld {
			a.tellWaiting(a.heldError(0))
			a.tellState()
		}
		switch {
		case lease != nil:
			return lease, nil
		case ctx.Err() != nil && !final(err):
			return nil, a.ended(ctx)
		case err == ErrHeld:
			if !a.waits {
				return nil, a.refusal(0)
			}
		case final(err), !a.mayRetry(err):
			return nil, err
		}
		lease, err = a.pause(ctx)
		switch {
		case lease != nil:
			return lease, nil
		case err != nil:
			return nil, a.ended(ctx)
		}
	}
}

// newTerm returns the term of the requested lease, before its grant.
func (a *acquisition) newTerm() term { return newTerm(&a.opts, max(a.req.TTL, a.req.WaiterTTL)) }

// failed notes a request without an answer and classifies its error.
func (a *acquisition) failed(sent time.Time, ctx context.Context, err error) error {
	if !driver.Definite(err) {
		a.uncertain = true
	}
	a.countFailure(sent)
	return ask.Harmless(ctx, err)
}

// abandon leaves nothing in the store: neither a lease that was granted
// unseen nor a place.
func (a *acquisition) abandon() {
	if a.uncertain || !a.queued.Mono.IsZero() {
		a.cancelRequest()
		a.uncertain, a.queued = false, instant{}
	}
}
