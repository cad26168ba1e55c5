package holdfast

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// complete stores a record and ends the lease, as one step: it is the Release
// of do-once work. The request is repeated for Options.RequestTimeout, even
// after ctx has ended, because the work is done.
func (l *Lease) complete(ctx context.Context, recorder driver.Recorder, req driver.CompleteRequest) error {
	l.client.started() // Close waits for this, as for Release
	defer l.client.finished()
	if !l.beginRelease(l.client.now()) {
		return l.lostError() // the work itself has released it
	}
	ctx, cancel := l.client.requestContext(context.WithoutCancel(ctx))
	defer cancel()
	lost := l.lostBefore()
	if lost != nil { // the store may still have the lease, and accept the result
		ctx, cancel = ask.LimitUntil(ctx, l.repeatUntil())
		defer cancel()
	}
	l.awaitRenewals(ctx) // INVARIANT I9
	// INVARIANT I6: the store knows a repeat by the lease ID.
	f := ask.Until(ctx, l.client.opts.RequestTimeout, func(ctx context.Context) error { return recorder.Complete(ctx, req) })
	err := f.Effective()
	if isLost(err) && lost == nil {
		err = l.whyGone(ctx)
	}
	switch {
	case err != nil && !isLost(err):
		// If the record was not stored, the next caller should not wait for the TTL.
		l.client.releaseInBackground(l.releaseRequest, l.repeatUntil(), l.cleanupOf())
	case err == nil:
		l.noteCompleted()
	}
	if err != nil && lost != nil && driver.Definite(err) {
		err = lost // the record is not stored, and this is why
	}
	_ = l.endRelease(ctx, err)
	return err
}

// keepRecord stores a record under the lease, which the store keeps. The request is repeated for
// Options.RequestTimeout, even after ctx has ended.
func (l *Lease) keepRecord(ctx context.Context, recorder driver.Recorder, req driver.CompleteRequest) error {
	if !l.Valid() {
		return l.lostError()
	}
	ctx, cancel := l.client.requestContext(context.WithoutCancel(ctx))
	defer cancel()
	req.Keep = true
	f := ask.Until(ctx, l.client.opts.RequestTimeout, func(ctx context.Context) error { return recorder.Complete(ctx, req) })
	err := f.Effective()
	switch {
	case isLost(err):
		return l.gone(ctx)
	case err == nil:
		return l.lostMeanwhile()
	}
	return err
}
