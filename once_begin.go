package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// A OnceRun is do-once work that was begun, under its lease, or the result of work that
// was done before: see Replayed. The caller must end work that was begun with Complete or
// Fail, or leave it to another process: see OnceAdopt. As Fail does nothing after Complete,
// and nothing if the run is Replayed, the caller can defer it.
//
// All methods are safe for concurrent use.
type OnceRun struct {
	key      string
	lease    *Lease // nil if the run is Replayed
	result   OnceResult
	recorder driver.Recorder
	opts     OnceOptions
}

// OnceBegin is the first half of Once, for work whose beginning and end are two calls,
// or two processes. The state of the key decides:
//
//   - absent: the caller does the work, under the lease of the OnceRun;
//   - in progress: ErrInProgress, or the result later with Await;
//   - done: the OnceRun is Replayed, and has the stored result.
func (c *Client) OnceBegin(ctx context.Context, key string, opts *OnceOptions) (*OnceRun, error) {
	key = opts.keyOf(key)
	run, err := c.begin(ctx, key, opts)
	return run, opError("once", key, err)
}

func (c *Client) begin(ctx context.Context, key string, opts *OnceOptions) (*OnceRun, error) {
	r, err := c.newRun(key, opts)
	if err != nil {
		return nil, err
	}
	a, err := c.newOnce(ctx, key, r.opts)
	if err != nil {
		return nil, err
	}
	if r.lease, err = a.run(ctx); err == errRecorded {
		if r.result, err = replay(a.record, r.opts.Fingerprint); err != nil {
			a.tellRefused(err)
			return nil, err
		}
		a.tellReplayed(r.result.Token)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// newRun returns a run without a lease.
func (c *Client) newRun(key string, opts *OnceOptions) (*OnceRun, error) {
	o, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	recorder, err := c.recorder(key)
	return &OnceRun{key: key, recorder: recorder, opts: o}, err
}

// OnceAdopt takes over work that was begun, by the Handle of its lease, as Adopt does: the
// process that began it has left it, with OnceRun.Leave, or has ended. TTL, MaxHold and
// StallAfter of the options hold from now on, and Retention and MaxResult for Complete;
// Fingerprint should be the one of the beginning. The key is the Handle's, whatever
// Scheduled is.
//
// If this very run was completed already, by a request whose answer was lost, the OnceRun
// is Replayed, and has the stored result. ErrLost means that the run has ended otherwise;
// the key may be in progress again, or done by another run.
func (c *Client) OnceAdopt(ctx context.Context, handle Handle, opts *OnceOptions) (*OnceRun, error) {
	key, token := handle.name, handle.token
	r, err := c.newRun(key, opts)
	if err != nil {
		return nil, opError("once", key, err)
	}
	o := r.opts
	c.started() // as in Adopt
	defer c.finished()
	var a acquisition
	err = c.prepareAdoption(ctx, &a, handle, &AdoptOptions{TTL: o.TTL, MaxHold: o.MaxHold, StallAfter: o.StallAfter})
	if err == nil && handle.mode != Exclusive {
		err = fmt.Errorf("%w Handle: do-once work has an exclusive lease, and its lease is not", ErrInvalid)
	}
	if err != nil {
		return nil, opError("adopt", key, err)
	}
	a.req.Once = true // for the Observer
	r.lease, err = a.adopt(ctx, token)
	switch {
	case err == nil:
		return r, nil
	case isLost(err):
		if result, e := c.Records().Result(ctx, key); e == nil && result.Replayed && result.Token == token {
			a.tellReplayed(token)
			r.result = result
			return r, nil
		}
	}
	a.tellRefused(err)
	return nil, opError("adopt", key, err)
}

// Replayed reports whether the work was done before: the run has no Lease, there is
// nothing to do, and Result returns the stored result.
func (r *OnceRun) Replayed() bool { return r.result.Replayed }

// Result returns the stored result of a run that is Replayed, and a zero OnceResult
// otherwise.
func (r *OnceRun) Result() OnceResult { return r.result }

// Lease returns the lease under which the work is done. Its Context ends when the run
// ends. It is nil if the run is Replayed.
func (r *OnceRun) Lease() *Lease { return r.lease }

// Complete stores the result of the work and ends the run, in one step that is repeated
// for Options.RequestTimeout, even after ctx has ended. It returns ErrInvalid if the
// result is longer than MaxResult, and the run goes on; and ErrInvalid if the run is
// Replayed, whose stored result stays unchanged. Any other error ends the run: after ErrLost
// nothing was stored, because the lease was lost before, and after ErrOutcomeUnknown
// the store has not answered.
func (r *OnceRun) Complete(ctx context.Context, value []byte) error {
	if r.Replayed() {
		return opError("once", r.key, fmt.Errorf("%w call of Complete: the run is replayed: Result returns the result that is stored", ErrInvalid))
	}
	l := r.lease
	if len(value) > r.opts.MaxResult {
		err := fmt.Errorf("%w result: it has %d bytes, the limit is %d: raise MaxResult, or store it elsewhere", ErrInvalid, len(value), r.opts.MaxResult)
		return opError("once", l.name, err)
	}
	req := driver.CompleteRequest{
		Name: l.name, LeaseID: l.id, Retention: r.opts.Retention,
		Record: oncerecord.Format(oncerecord.Header{Fingerprint: r.opts.Fingerprint, Token: l.token}, value),
	}
	return opError("once", l.name, l.complete(ctx, r.recorder, req))
}

// Leave leaves the run to another process, which takes it over with OnceAdopt: see
// Lease.Leave. It returns ErrInvalid if the run is Replayed.
func (r *OnceRun) Leave() (Handle, error) {
	if r.Replayed() {
		return Handle{}, opError("leave", r.key, fmt.Errorf("%w call of Leave: the run is replayed, and has no lease", ErrInvalid))
	}
	return r.lease.Leave()
}

// Fail ends the run without a result: the next caller, or the first waiter,
// does the work. It returns the errors of Lease.Release. After Complete, and after
// Leave, it sends nothing, and after a Complete that failed it returns that error
// again. If the run is Replayed it does nothing and returns nil.
func (r *OnceRun) Fail(ctx context.Context) error {
	if r.Replayed() {
		return nil
	}
	return r.lease.Release(ctx)
}
