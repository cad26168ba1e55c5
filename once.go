package holdfast

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// The limits of do-once results and of how long they are kept.
const (
	MaxOnceResult = 16 << 20 // bytes
	MaxRetention  = 3653 * 24 * time.Hour

	defaultOnceResult = 1 << 20
	defaultRetention  = 24 * time.Hour
	maxFingerprint    = 256 // bytes
)

// Forever, as OnceOptions.Await, waits until the context ends.
const Forever time.Duration = math.MaxInt64

// OnceOptions are the options of one call of Once. Nil is default; a zero
// field is default.
type OnceOptions struct {
	// TTL is how long the key stays taken if the process that works dies; the
	// client keeps the lease alive while it works. Default: Options.TTL.
	TTL time.Duration

	// Retention is how long the result is kept and replayed. 10 ms to about
	// ten years. Default: 24 hours.
	Retention time.Duration

	// Await is how long Once waits while another client works, for the result or, if
	// that work fails, for the turn to do it. If that takes longer, or with zero at
	// once, it returns ErrInProgress. Forever waits until the context ends. However
	// short it is, the first request may take Options.RequestTimeout.
	Await time.Duration

	// Scheduled makes the key name one run of a schedule, "reports/nightly" to
	// "reports/nightly@2026-11-21T03:00Z": however many replicas call Once for the
	// same scheduled time, whatever their clocks show, fn runs once. It is the time for
	// which the run is due, in whole seconds, and not the
	// present time: see ScheduledTime. Retention must be longer than a replica may be
	// late; a replica that comes later works again. Zero: the key is used unchanged.
	Scheduled time.Time

	// Fingerprint identifies the request that the work answers, such as a hash of it.
	// To use the key again with another fingerprint is ErrFingerprint. At most 256
	// bytes; the store shows it. Empty: not compared.
	Fingerprint string

	// MaxResult is the greatest length of a result in bytes, up to
	// MaxOnceResult. Default: 1 MiB.
	MaxResult int

	// WholeTTL, MaxHold, StallAfter, Reason, Labels and OnWait are as in
	// AcquireOptions. Without Await there is no wait, and OnWait is not called.
	WholeTTL   bool
	MaxHold    time.Duration
	StallAfter time.Duration
	Reason     string
	Labels     map[string]string
	OnWait     func(WaitState)
}

// A OnceResult is what Once returns.
type OnceResult struct {
	Value    []byte
	Replayed bool   // it was kept from an earlier run; fn was not called
	Token    uint64 // fencing token of the run that it came from
}

// Once runs fn unless it was done already under this key, and keeps its result
// for OnceOptions.Retention, so that callers on any machine get the result
// instead of doing the work again. The state of the key decides:
//
//   - absent: fn runs, under a lease of the lock of this name that is kept
//     alive, and its result is stored;
//   - in progress: ErrInProgress, or the result later with Await; if ctx ends first,
//     both ctx's error and ErrInProgress;
//   - done: the stored result, Replayed.
//
// If fn returns an error, panics, or its result is too large (ErrInvalid), or if the lease
// is lost, nothing is stored and the key is free again at once, or as soon as the store
// learns of the loss: the next caller runs fn. Once returns the error of fn unchanged. A
// result is only stored under a live lease: a process that was paused for too long gets
// ErrLost and overwrites nothing, though fn may have worked twice: pass lease.Token to a
// resource that can check it.
//
// ErrOutcomeUnknown means that fn succeeded, but the store did not answer: the
// result may be stored or not.
func (c *Client) Once(ctx context.Context, key string, opts *OnceOptions, fn func(ctx context.Context, l *Lease) ([]byte, error)) (OnceResult, error) {
	if fn == nil {
		return OnceResult{}, opError("once", key, errNoWork)
	}
	run, err := c.OnceBegin(ctx, key, opts)
	if err != nil {
		return OnceResult{}, err
	}
	if run.Replayed() {
		return run.Result(), nil
	}
	return run.do(ctx, fn)
}

// newOnce returns the acquisition of the lease of a key.
func (c *Client) newOnce(ctx context.Context, key string, o OnceOptions) (*acquisition, error) {
	a, maxWait := &acquisition{}, o.Await
	if o.Await == Forever {
		maxWait = 0
	}
	err := c.prepare(ctx, a, key, &AcquireOptions{
		TTL: o.TTL, MaxWait: maxWait, WholeTTL: o.WholeTTL, MaxHold: o.MaxHold, StallAfter: o.StallAfter, Reason: o.Reason, Labels: o.Labels, OnWait: o.OnWait,
	}, true)
	if err != nil {
		return nil, err
	}
	a.waits, a.req.Once = o.Await > 0, true
	a.req.Holder.Once, a.req.Holder.Fingerprint = true, o.Fingerprint
	return a, nil
}

// compareFingerprints returns ErrFingerprint if both fingerprints are given and differ.
func compareFingerprints(there, ours string) error {
	if there != "" && ours != "" && there != ours {
		return ErrFingerprint
	}
	return nil
}

// do runs fn, and stores its result or frees the key, even if fn panics.
func (r *OnceRun) do(ctx context.Context, fn func(context.Context, *Lease) ([]byte, error)) (result OnceResult, err error) {
	workCtx, stop := r.lease.attach(ctx)
	defer func() {
		stop()
		r.lease.noteFailure(err)
		err = r.lease.orLost("once", r.lease.Release(ctx), err) // after Complete, Release sends nothing
	}()
	value, err := fn(workCtx, r.lease)
	if err != nil {
		return OnceResult{}, err
	}
	if err := r.Complete(ctx, value); err != nil {
		return OnceResult{}, err
	}
	return OnceResult{Value: value, Token: r.lease.token}, nil
}

// Check returns an error that wraps ErrInvalid if an option that AcquireOptions does not
// have is out of range; see AcquireOptions.Check.
func (o *OnceOptions) Check() error {
	_, err := o.resolve()
	return err
}

// resolve returns a copy of o with the defaults filled in, or an error that
// wraps ErrInvalid. AcquireOptions.Check checks the options that it has too.
func (o *OnceOptions) resolve() (OnceOptions, error) {
	c := *cmp.Or(o, &OnceOptions{})
	c.Retention, c.MaxResult = cmp.Or(c.Retention, defaultRetention), cmp.Or(c.MaxResult, defaultOnceResult)
	switch {
	case c.Retention < MinTTL || c.Retention > MaxRetention:
		return c, fmt.Errorf("%w Retention %s: want %s to %s", ErrInvalid, c.Retention, MinTTL, MaxRetention)
	case c.MaxResult < 0 || c.MaxResult > MaxOnceResult:
		return c, fmt.Errorf("%w MaxResult %d: want up to %d", ErrInvalid, c.MaxResult, MaxOnceResult)
	case len(c.Fingerprint) > maxFingerprint || !driver.IsText(c.Fingerprint):
		return c, fmt.Errorf("%w Fingerprint: want up to %d bytes of UTF-8 without control characters", ErrInvalid, maxFingerprint)
	case c.Await < 0:
		return c, fmt.Errorf("%w Await %s: it is negative; zero does not wait, and Forever waits until the context ends", ErrInvalid, c.Await)
	case c.Scheduled.Nanosecond() != 0:
		return c, fmt.Errorf("%w Scheduled %s: want a scheduled time in whole seconds, not the present time: see ScheduledTime", ErrInvalid, c.Scheduled)
	}
	c.Retention = ceilMS(c.Retention)
	return c, nil
}

// OnceJSON is Once for work whose result can be written as JSON.
func OnceJSON[T any](ctx context.Context, c *Client, key string, opts *OnceOptions, fn func(ctx context.Context, l *Lease) (T, error)) (v T, r OnceResult, err error) {
	if fn == nil {
		return v, r, opError("once", key, errNoWork)
	}
	r, err = c.Once(ctx, key, opts, func(ctx context.Context, l *Lease) ([]byte, error) {
		v, err := fn(ctx, l)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(v)
		return data, opError("once", key, err)
	})
	if err != nil {
		return v, r, err
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		var none T // v may be filled in part
		return none, r, opError("once", key, fmt.Errorf("%w: the stored result is of another type: %w", ErrKindMismatch, err))
	}
	return v, r, nil
}

// replay returns the result that a record has. It returns ErrFingerprint if both the record and
// the caller have a fingerprint and they differ.
func replay(record []byte, fingerprint string) (OnceResult, error) {
	h, value, ok := oncerecord.Parse(record)
	switch {
	case ok:
	case parseSchedule(record) != nil:
		return OnceResult{}, fmt.Errorf("%w: it is a schedule: see Records.Schedule, or take another name for the key", ErrKindMismatch)
	default:
		return OnceResult{}, fmt.Errorf("%w: the record is not of this version: forget the key", ErrKindMismatch)
	}
	if err := compareFingerprints(h.Fingerprint, fingerprint); err != nil {
		return OnceResult{}, err
	}
	return OnceResult{Value: value, Replayed: true, Token: h.Token}, nil
}
