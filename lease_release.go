package holdfast

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Release ends Context, releases the lock and returns when the store has
// answered: the next holder may then have it. With MinHold the name stays
// closed for the rest of that time.
//
// It works even if ctx has ended, for Options.RequestTimeout at most, and
// never for longer than the lease lasts. It returns ErrLost, at once, if the
// lease was lost before; what the store may still keep of it is freed in the
// background. After ErrOutcomeUnknown and ErrUnavailable the store did not
// answer: the client goes on trying in the background, and the lock is free
// at the lease's expiry at the latest.
//
// The caller must call Release after the work, even after a loss. It
// may be called again, from anywhere, and then returns what the first call
// returns.
func (l *Lease) Release(ctx context.Context) error {
	l.client.started() // Close waits for the release
	defer l.client.finished()
	now := l.client.now()
	if next, f := l.handOn(now); next != nil {
		l.endContext()
		err := l.endRelease(ctx, nil)
		f.turn <- turn{lease: next} // only now, when this turn has ended
		runtime.Gosched()           // the next holder goes first
		return err
	}
	if !l.beginRelease(now) {
		return l.awaitRelease(ctx)
	}
	if ctx.Err() != nil || l.isAround(ctx) {
		ctx = context.WithoutCancel(ctx)
	}
	err := l.release(ctx, now.Mono)
	l.endTurns()
	if err == nil && l.streak != nil {
		if t := l.present(); t.minHold == 0 { // MinHold may keep the name closed
			l.client.turns.Released(l.name, l.streak, t.began.Mono)
		}
	}
	return l.endRelease(ctx, err)
}

// errClosedUnder is the error of work under a lease that Close has released.
var errClosedUnder = fmt.Errorf("%w: its client is %w", ErrLost, ErrClosed)

// noteClose notes that Close is about to release the lease.
func (l *Lease) noteClose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = l.state == stateHeld
}

// closedBefore returns errClosedUnder if Close has released the lease before its holder, or nil.
func (l *Lease) closedBefore() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed && l.state != stateHeld {
		return errClosedUnder
	}
	return nil
}

// beginRelease ends the lease for its holder. It reports whether this is the
// first call.
func (l *Lease) beginRelease(now instant) bool {
	l.validAt(now) // if the deadline has passed, the lease is lost, not released
	l.mu.Lock()
	if l.state >= stateReleasing {
		l.mu.Unlock()
		return false
	}
	l.state = stateReleasing
	l.mu.Unlock()
	l.client.leases.remove(l)
	l.endContext()
	return true
}

// endRelease sets and returns the result, and wakes other calls of Release, which wait for it.
func (l *Lease) endRelease(ctx context.Context, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.result = stateReleased, opError("release", l.name, err)
	if l.released != nil {
		close(l.released)
	}
	l.tellReleasedLocked(ctx, err)
	return l.result
}

// awaitRelease waits for the result of the first call, or until ctx ends.
func (l *Lease) awaitRelease(ctx context.Context) error {
	l.mu.Lock()
	if l.state == stateReleased {
		defer l.mu.Unlock()
		return l.result
	}
	if l.released == nil {
		l.released = make(chan struct{})
	}
	l.mu.Unlock()
	select {
	case <-l.released:
		return l.result
	case <-ctx.Done():
		return opError("release", l.name, ask.ContextError(ctx))
	}
}

// release sends the release request after all renewals have been answered. INVARIANT I9. One
// request timeout covers both, so a store that does not answer the renewals delays the release
// no longer. A renewal that the store carries out later does no harm, because the store
// compares lease IDs.
//
// For a lost lease it returns at once, and releases in the background. It does not wait beyond
// the expiry of the lease.
func (l *Lease) release(ctx context.Context, now time.Time) error {
	if lost := l.lostBefore(); lost != nil {
		l.client.spawn(func(background context.Context) {
			ctx, cancel := l.client.requestContext(background)
			l.awaitRenewals(ctx)
			cancel()
			l.client.repeatRelease(background, l.releaseRequest, l.repeatUntil(), l.cleanupOf())
		})
		return lost
	}
	ctx, cancel := ask.LimitUntil(ctx, l.present().awaitUntil(now, l.client.opts.RequestTimeout))
	defer cancel()
	l.awaitRenewals(ctx)
	err := ask.Effective(ctx, l.client.engine.Release(ctx, l.releaseRequest()))
	if isLost(err) {
		err = l.whyGone(ctx)
	}
	if err != nil && !driver.Permanent(err) {
		l.client.releaseInBackground(l.releaseRequest, l.repeatUntil(), l.cleanupOf())
	}
	return err
}

// awaitRenewals waits until no renewal is under way, or until ctx ends. It is called once, after
// Release has begun; no renewal begins after that.
func (l *Lease) awaitRenewals(ctx context.Context) {
	l.mu.Lock()
	landed := l.term.underway == 0
	if !landed {
		l.landed = make(chan struct{})
	}
	l.mu.Unlock()
	if landed {
		return
	}
	select {
	case <-l.landed:
	case <-ctx.Done():
	}
}

// landLocked lets Release go on as soon as no renewal is under way.
func (l *Lease) landLocked() {
	if l.landed != nil && l.term.underway == 0 {
		close(l.landed)
	}
}

// releaseRequest returns the request to send now. It is computed for each repeat, because MinHold
// counts from the grant. Lost lets a history tell a lost lease from a released one.
func (l *Lease) releaseRequest() driver.ReleaseRequest {
	req := driver.ReleaseRequest{Name: l.name, LeaseID: l.id, Cancel: l.cancel}
	req.Lost = l.lostBefore() != nil
	if t := l.present(); t.minHold > 0 {
		req.KeepFor = t.keepFor(l.client.now())
	}
	return req
}

// repeatUntil returns until when the client repeats the release in the background.
func (l *Lease) repeatUntil() time.Time { return l.present().repeatUntil(time.Now(), l.cancel) }
