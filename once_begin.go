package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// A OnceRun is do-once work that was begun, under its lease. It ends with Complete or
// Fail, one of which its owner must call, or in another process: see OnceAdopt.
type OnceRun struct {
	lease    *Lease
	recorder driver.Recorder
	opts     OnceOptions
}

// OnceBegin is the first half of Once, for work whose beginning and end are two calls,
// or two processes. The state of the key decides:
//
//   - absent: the work is the caller's, under the lease of the OnceRun;
//   - in progress: ErrInProgress, or the result later with Await;
//   - done: no OnceRun and no error, but the stored result, Replayed.
func (c *Client) OnceBegin(ctx context.Context, key string, opts *OnceOptions) (*OnceRun, OnceResult, error) {
	run, result, err := c.begin(ctx, key, opts)
	return run, result, opError("once", key, err)
}

func (c *Client) begin(ctx context.Context, key string, opts *OnceOptions) (*OnceRun, OnceResult, error) {
	r, err := c.newRun(key, opts)
	if err != nil {
		return nil, OnceResult{}, err
	}
	a, err := c.newOnce(ctx, key, r.opts)
	if err != nil {
		return nil, OnceResult{}, err
	}
	r.lease, err = a.run(ctx, r.opts.Await)
	var held *HeldError
	switch {
	case errors.Is(err, errRecorded):
		result, err := replay(a.record, r.opts.Fingerprint)
		if err != nil {
			a.tellRefused(err)
		} else {
			a.tellReplayed(result.Token)
		}
		return nil, result, err
	case errors.As(err, &held):
		err = (*InProgressError)(held)
	}
	if err != nil {
		return nil, OnceResult{}, err
	}
	return r, OnceResult{}, nil
}

// newRun returns a run without its lease.
func (c *Client) newRun(key string, opts *OnceOptions) (*OnceRun, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	recorder, err := c.recorder(key)
	return &OnceRun{recorder: recorder, opts: o}, err
}

// OnceAdopt takes over work that was begun, by the lease ID and the fencing token of
// its lease, as Adopt does: the process that began it has left its lease, or has ended.
// TTL, MaxHold and Progress of the options hold from now on, and Retention and MaxResult
// for Complete; Fingerprint should be that of the beginning.
//
// If this very run was completed already, by a request whose answer was lost, there is
// no OnceRun and no error, but the stored result, Replayed. ErrLost says that the run is
// over otherwise; the key may be in progress again, or done by another run.
func (c *Client) OnceAdopt(ctx context.Context, key string, leaseID LeaseID, token uint64, opts *OnceOptions) (*OnceRun, OnceResult, error) {
	r, err := c.newRun(key, opts)
	if err != nil {
		return nil, OnceResult{}, opError("once", key, err)
	}
	o := r.opts
	c.started() // as in Adopt
	defer c.finished()
	var a acquisition
	err = c.prepareAdoption(ctx, &a, key, leaseID, &AdoptOptions{Token: token, TTL: o.TTL, MaxHold: o.MaxHold, Progress: o.Progress})
	if err != nil {
		return nil, OnceResult{}, opError("adopt", key, err)
	}
	a.req.Once = true // for the Observer
	r.lease, err = a.adopt(ctx, token)
	switch {
	case err == nil:
		a.tellAcquired(r.lease)
		return r, OnceResult{}, nil
	case isLost(err):
		if status, e := c.status(ctx, key); e == nil && status.State == OnceDone && status.Result.Token == token {
			a.tellReplayed(token)
			return nil, status.Result, nil
		}
	}
	a.tellRefused(err)
	return nil, OnceResult{}, opError("adopt", key, err)
}

// Lease returns the lease under which the work is done. Its Context ends when the run
// is over.
func (r *OnceRun) Lease() *Lease { return r.lease }

// Complete stores the result of the work and ends the run, in one step that is repeated
// for Options.RequestTimeout, even after ctx has ended. It returns ErrInvalid if the
// result is longer than MaxResult, and the run goes on. On any other error it is over:
// ErrLost says that nothing was stored, because the lease was lost before, and
// ErrOutcomeUnknown that the store has not answered.
func (r *OnceRun) Complete(ctx context.Context, value []byte) (OnceResult, error) {
	l := r.lease
	if len(value) > r.opts.MaxResult {
		err := fmt.Errorf("%w result: it has %d bytes, the limit is %d: raise MaxResult, or store it elsewhere", ErrInvalid, len(value), r.opts.MaxResult)
		return OnceResult{}, opError("once", l.name, err)
	}
	req := driver.CompleteRequest{
		Name: l.name, LeaseID: l.id, Retention: r.opts.Retention,
		Record: oncerecord.Format(oncerecord.Header{Fingerprint: r.opts.Fingerprint, Token: l.token}, value),
	}
	if err := l.complete(ctx, r.recorder, req); err != nil {
		return OnceResult{}, opError("once", l.name, err)
	}
	return OnceResult{Value: value, Token: l.token}, nil
}

// Fail ends the run without a result: the next caller, or the first of those who wait,
// does the work. Its errors are those of Lease.Release.
func (r *OnceRun) Fail(ctx context.Context) error { return r.lease.Release(ctx) }
