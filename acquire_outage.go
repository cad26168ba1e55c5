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

// outageShortest is for how long the store has to be silent before a waiter
// calls it an outage.
const outageShortest = time.Second

// silenceShortest is how long a store may take that is only busy: who it said was in the
// way is in the way still, even if the wait was shorter than that.
const silenceShortest = 100 * time.Millisecond

func (a *acquisition) countFailure(sent time.Time) {
	if a.failing.requests++; a.failing.requests == 1 {
		a.failing.since = sent
	}
	a.publish()
}

// suffer notes why a request failed, and tells the Observer when that has
// become an outage.
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

// answered notes that the store is there.
func (a *acquisition) answered() {
	a.failing.outage = false
	a.tellOutageEnded(nil)
	a.failing.requests, a.failing.err = 0, nil
	a.publish()
}

// blocked notes what is in the way, according to the store.
func (a *acquisition) blocked(by driver.Blocker) {
	a.blocker, a.blockedAt, a.report.handed = &by, time.Now(), false
	a.publish()
}

// mayRetry decides whether a failed request is repeated. A caller who waits
// rides out an outage of the store, whether it began before the wait or later;
// one who has named no end of the wait, and has not heard from the store yet,
// gives up after the request timeout; one who does not want to wait repeats only
// what may have been carried out unseen.
func (a *acquisition) mayRetry(err error) bool {
	if a.waits && (a.blocker != nil || a.opts.MaxWait > 0) {
		return true
	}
	if !a.waits && !a.uncertain && errors.Is(err, ErrUnavailable) {
		return false
	}
	return time.Since(a.failing.since) < a.client.opts.RequestTimeout
}

// waitEnd is the end of AcquireOptions.MaxWait, which counts from the call.
func (a *acquisition) waitEnd() time.Time { return a.began.Add(a.opts.MaxWait) }

// waitOver reports whether there was a MaxWait, and it has ended.
func (a *acquisition) waitOver() bool { return a.opts.MaxWait > 0 && !time.Now().Before(a.waitEnd()) }

// errWaitOver is the cause of the end of AcquireOptions.MaxWait.
var errWaitOver = errors.New("the wait has ended")

// ended explains why the wait ended without a lease: by the caller's own context or
// the MaxWait, while the store said who is in the way, or has not said anything for too
// long for that to be true still.
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
	return ask.ContextError(ctx) // before the store has said anything
}

// silent reports whether the store has not answered for so long that what it said before may not be
// true any more.
func (a *acquisition) silent() bool {
	return a.failing.requests > 0 && time.Since(a.failing.since) >= min(outageShortest, max(silenceShortest, time.Since(a.began)/2))
}

// refusal is heldError as the caller gets it.
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

// heldError returns an error about the holder in the way. The times that the store has sent
// are counted to now.
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
