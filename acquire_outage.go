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

// outageShortest is how long the store has to be silent before a waiter counts that as an
// outage.
const outageShortest = time.Second

// silenceShortest is how long a busy store may take to answer. During that time the blocker of
// its last reply is taken to be in the way still, even if the wait was shorter.
const silenceShortest = 100 * time.Millisecond

func (a *acquisition) countFailure(sent time.Time) {
	if a.failing.requests++; a.failing.requests == 1 {
		a.failing.since = sent
	}
	a.publish()
}

// suffer notes why a request failed. If the failures have become an outage it tells the
// Observer and OnWait.
func (a *acquisition) suffer(err error) {
	if !errors.Is(err, ErrUnavailable) {
		return
	}
	a.failing.err = err
	a.publish()
	if a.waits && !a.failing.outage && time.Since(a.failing.since) >= outageShortest {
		a.failing.outage = true
		a.tellOutage(err)
		a.tellState()
	}
}

// answered notes that the store has answered.
func (a *acquisition) answered() {
	a.failing.outage = false
	a.tellOutageEnded(nil)
	a.failing.requests, a.failing.err = 0, nil
	a.publish()
}

// blocked notes the blocker that the store has named, and the time of its reply.
func (a *acquisition) blocked(by driver.Blocker, at time.Time) {
	a.blocker, a.blockedAt, a.report.handed = &by, at, false
	a.publish()
}

// mayRetry decides whether a failed request is repeated. A caller that waits rides out an outage
// of the store; but if it has no MaxWait, and the store has not answered once, it gives up after
// the request timeout. A caller that does not wait repeats only a request that the store may
// have carried out.
func (a *acquisition) mayRetry(err error) bool {
	if a.waits && (a.blocker != nil || a.opts.MaxWait > 0) {
		return true
	}
	if !a.waits && !a.uncertain && errors.Is(err, ErrUnavailable) {
		return false
	}
	return time.Since(a.failing.since) < a.client.opts.RequestTimeout
}

// waitEnd returns when AcquireOptions.MaxWait ends. It counts from the call.
func (a *acquisition) waitEnd() time.Time { return a.began.Add(a.opts.MaxWait) }

// waitOver reports whether MaxWait is set and has ended.
func (a *acquisition) waitOver() bool { return a.opts.MaxWait > 0 && !time.Now().Before(a.waitEnd()) }

// errWaitOver is the cause of a context that ended at AcquireOptions.MaxWait.
var errWaitOver = errors.New("the wait has ended")

// ended returns the error of a wait that ended without a lease, by the caller's context or by
// MaxWait. The error names the blocker; or it is ErrUnavailable, if the store has been silent
// for too long.
func (a *acquisition) ended(ctx context.Context) error {
	waited := time.Since(a.began)
	known := a.blocker != nil && !a.silent()
	switch byWait := context.Cause(ctx) == errWaitOver; {
	case byWait && known:
		return a.refusal(waited)
	case byWait:
		return a.silentError()
	case known:
		return fmt.Errorf("%w while it was %w", ask.ContextError(ctx), a.refusal(waited))
	case a.blocker != nil, a.failing.err != nil:
		return fmt.Errorf("%w: %w", ask.ContextError(ctx), a.silentError())
	}
	return ask.ContextError(ctx) // before any reply or failure
}

// silent reports whether the store has not answered for so long that its last reply may be out
// of date.
func (a *acquisition) silent() bool {
	return a.failing.requests > 0 && time.Since(a.failing.since) >= min(outageShortest, max(silenceShortest, time.Since(a.began)/2))
}

// refusal returns heldError as the caller gets it: an *InProgressError for do-once work.
func (a *acquisition) refusal(waited time.Duration) error {
	held := a.heldError(waited)
	if a.req.Once {
		return (*InProgressError)(held)
	}
	return held
}

func (a *acquisition) silentError() error {
	err := a.failing.err
	if err == nil {
		err = fmt.Errorf("%w: no answer", ErrUnavailable)
	}
	if a.blocker == nil {
		return fmt.Errorf("%w (waited %s)", err, lockinfo.Span(time.Since(a.began)))
	}
	return fmt.Errorf("%w (for the last %s; before that held by %s)", err, lockinfo.Span(time.Since(a.failing.since)), a.blocker.Holder)
}

// heldError returns an error that names the blocker. It adjusts the times that the store has
// sent to now.
func (a *acquisition) heldError(waited time.Duration) *HeldError {
	by, since, left := a.blocker, a.blocker.Since, a.blocker.ExpiresIn
	if left != Never {
		left = max(0, left-time.Since(a.blockedAt))
	}
	if since > 0 {
		since += time.Since(a.blockedAt)
	}
	return &HeldError{
		Holder: by.Holder, Since: since, ExpiresIn: left,
		Released: by.Released, Foreign: by.Foreign, Queue: by.Queue, Waited: waited,
	}
}
