package holdfast

import (
	"cmp"
	"context"
	"errors"
	"reflect"
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
// error wraps ctx's. It is then also a *HeldError if another holder has
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

// TryAcquire is Acquire without waiting: if another holder has the lock it
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
	outer  *Lease          // the innermost lease of the caller's context, or nil
	began  time.Time
	waits  bool    // false for a try, which does not wait
	joins  bool    // it takes part in a cohort
	leads  *cohort // the cohort that it requests the lock for, or nil
	wait   wait.Waiter[instant]

	uncertain bool            // the store may have carried out a request of this lease ID whose reply was lost
	blocker   *driver.Blocker // from the store's last reply of Held, or nil
	blockedAt time.Time       // when that reply arrived
	queued    instant         // when the last request that got a place was sent, or zero
	record    []byte          // the stored result of the do-once work, with errRecorded

	failing failing
	report  report
}

// failing is the present series of failed requests.
type failing struct {
	requests int
	since    time.Time // when the first of them was sent
	err      error     // the error of the last of them, or nil if it is not known
	outage   bool      // the series has lasted long enough to count as an outage
}

// A report is what an acquisition keeps for the Observer and OnWait; see observe.go.
type report struct {
	key     LeaseID    // the Key of all events of the acquire, and of its lease
	sent    int        // how many requests were sent
	handed  bool       // the store has handed the lock over to this acquisition, as far as it knows
	waited  bool       // Waiting was sent to the Observer, whose queue may have dropped it
	waiting bool       // Waiting was sent and not dropped
	place   int        // the last place that was sent to the Observer
	outage  bool       // OutageBegan was sent and not dropped
	state   *WaitState // the last state that was passed to OnWait, or nil
}

// prepare begins an acquisition: it checks the arguments, and returns ErrDeadlock if the
// caller would wait for its own lease. It sends nothing.
func (c *Client) prepare(ctx context.Context, a *acquisition, name string, opts *AcquireOptions, waits bool) error {
	if err := c.fill(ctx, a, name, opts); err != nil {
		return err
	}
	a.waits = waits
	return a.checkNesting()
}

// fill checks the arguments, and fills in the acquisition.
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

// run makes attempts until one decides the outcome. If it fails it leaves nothing in the
// store.
func (a *acquisition) run(ctx context.Context) (*Lease, error) {
	a.client.started() // Close ends the acquisition, and waits for its clean-ups
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
		_ = lease.Release(ctx) // if it fails, the client repeats it in the background
		err = ErrClosed
	}
	if err != nil {
		a.abandon()
		if err != errRecorded { // the caller reports that
			a.tellRefused(err)
		}
		return nil, err
	}
	a.tellAcquired(lease)
	return lease, nil
}

// errAbandoned is the error of an acquire that did not run to its end.
var errAbandoned = errors.New("OnWait has panicked, or ended the goroutine")

// final reports whether another attempt would end with the same error. The error of a context does
// not count, even if its cause is the loss of another lease.
func final(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return err == errRecorded || errors.Is(err, ErrFingerprint) || errors.Is(err, ErrNotReplicated) || driver.Permanent(err)
}

// attempts makes the first attempt under asked, so that even with a short MaxWait it has the
// whole request timeout. It makes the others under ctx, which ends with the wait.
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
	if !a.wait.Tried.IsZero() { // AcquireAll has sent a request for all names, without a reply
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

// newTerm returns the term of the lease before it is granted.
func (a *acquisition) newTerm() term { return newTerm(&a.opts, max(a.req.TTL, a.req.WaiterTTL)) }

// failed notes a failed request and classifies its error.
func (a *acquisition) failed(sent time.Time, ctx context.Context, err error) error {
	if !driver.Definite(err) {
		a.uncertain = true
	}
	a.countFailure(sent)
	return ask.Harmless(ctx, err)
}

// abandon removes from the store a place in the queue, and a lease whose grant this client
// may not have seen.
func (a *acquisition) abandon() {
	if a.uncertain || !a.queued.Mono.IsZero() {
		a.cancelRequest()
		a.uncertain, a.queued = false, instant{}
	}
}

// checkNesting returns ErrDeadlock if the acquire could wait for ever for a lease that its own
// context holds:
//
//   - The lease, or the request, is exclusive: the caller waits for itself.
//   - The caller holds a share or permits, and requests another share or more permits. An
//     exclusive or a large request may be queued in between: it waits for the caller's lease,
//     and the caller's request waits behind it. A try does not wait, so it may go ahead.
func (a *acquisition) checkNesting() error {
	for l := a.outer; l != nil; l = l.outer {
		if l.name != a.req.Name || !sameStore(l.client, a.client) || !l.Valid() {
			continue
		}
		if a.waits || l.Mode() == lockinfo.Exclusive || a.req.Mode == lockinfo.Exclusive {
			return ErrDeadlock
		}
	}
	return nil
}

// sameStore reports whether two clients share one engine. An engine that cannot be compared,
// such as a struct with a map, counts as not shared.
func sameStore(a, b *Client) bool {
	return a == b || reflect.ValueOf(a.engine).Comparable() && reflect.ValueOf(b.engine).Comparable() && a.engine == b.engine
}
