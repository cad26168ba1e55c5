package holdfast

import (
	"cmp"
	"context"

	"github.com/holdfast-locks/holdfast/driver"
)

// completeTries is how many requests to complete fit into the request timeout.
const completeTries = 3

// complete stores a record and ends the lease, as one step: it is the Release
// of do-once work. The request is repeated for Options.RequestTimeout, also
// after ctx has ended, because the work is done.
func (l *Lease) complete(ctx context.Context, recorder driver.Recorder, req driver.CompleteRequest) error {
	if !l.beginRelease() {
		return l.lostError() // the work itself has released it
	}
	ctx, cancel := l.client.requestContext(context.WithoutCancel(ctx))
	defer cancel()
	select {
	case <-l.landed: // INVARIANT I9
	case <-ctx.Done():
	}
	err := l.sendComplete(ctx, recorder, req)
	lost := l.lostBefore()
	switch {
	case err != nil && !isLost(err):
		// Should the record not be stored, then nobody shall wait for the TTL.
		l.client.releaseInBackground(driver.ReleaseRequest{Name: l.name, LeaseID: l.id, Cancel: l.cancel}, l.opts.TTL)
	case lost == nil:
		l.observeRelease(err)
	}
	if err != nil && lost != nil && certain(err) {
		err = lost // the record is not stored, and this is why
	}
	l.result = wrapOp("release", l.name, err)
	close(l.released)
	return err
}

// sendComplete repeats the request until the store has answered or ctx ends.
// INVARIANT I6: the store knows a repeat by the lease ID.
func (l *Lease) sendComplete(ctx context.Context, recorder driver.Recorder, req driver.CompleteRequest) error {
	var backoff backoff
	var unknown error // of a request that may have been carried out unseen
	for {
		once, cancel := context.WithTimeoutCause(ctx, l.client.opts.RequestTimeout/completeTries, errNoAnswer)
		err := recorder.Complete(once, req)
		if err != nil {
			err = effective(once, err)
		}
		cancel()
		if err == nil || isLost(err) {
			return err
		}
		if !certain(err) {
			unknown = err
		}
		if permanent(err) || !backoff.sleep(ctx) {
			return cmp.Or(unknown, err)
		}
	}
}
