package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The limits of do-once results and of how long they are kept.
const (
	MaxOnceResult = 16 << 20 // bytes
	MaxRetention  = 3653 * 24 * time.Hour

	defaultOnceResult = 1 << 20
	defaultRetention  = 24 * time.Hour
	maxFingerprint    = 256 // bytes
)

// OnceOptions are the options of one call of Once. Nil is default; a zero
// field is default.
type OnceOptions struct {
	// TTL is how long the key stays taken if the process that works dies; the
	// client keeps the lease alive while it works. Default: Options.TTL.
	TTL time.Duration

	// Retention is how long the result is kept and replayed. 10 ms to about
	// ten years. Default: 24 hours.
	Retention time.Duration

	// Await waits while somebody else works, for the result or, if that work
	// fails, for the turn to do it. Otherwise Once returns ErrInProgress at
	// once. Wait bounds the wait, as that of AcquireOptions; zero: until the
	// context ends.
	Await bool
	Wait  time.Duration

	// Fingerprint of the request that the work answers, such as a hash of it:
	// a key that is used again with another one is ErrFingerprint. At most 256
	// bytes; the store shows it. Empty: not compared.
	Fingerprint string

	// MaxResult is the greatest length of a result in bytes, up to
	// MaxOnceResult. Default: 1 MiB.
	MaxResult int

	// WholeTTL, MaxHold, Progress, Reason, Labels and OnWait are as in
	// AcquireOptions. Without Await there is no wait to be told of.
	WholeTTL bool
	MaxHold  time.Duration
	Progress time.Duration
	Reason   string
	Labels   map[string]string
	OnWait   func(WaitState)
}

// A OnceState is what has become of do-once work.
type OnceState int

const (
	OnceAbsent     OnceState = iota // nobody has done it, or its result was forgotten
	OnceInProgress                  // somebody does it
	OnceDone                        // it is done, and its result is kept
	OnceScheduled                   // it is the name of a schedule; see Every
)

func (s OnceState) String() string {
	return nameOf(int(s), onceStates)
}

// A OnceResult is what Once returns.
type OnceResult struct {
	Value    []byte
	Replayed bool   // it was kept from an earlier run; fn was not called
	Token    uint64 // fencing token of the run that it came from
}

// Once runs fn unless it was done already under this key, and keeps its result
// for OnceOptions.Retention, so that others, on whatever machine, get the
// result instead of doing it again. The state before decides:
//
//   - absent: fn runs, under a lease of the lock of this name that is kept
//     alive, and its result is stored;
//   - in progress: ErrInProgress, or the result later with Await; if ctx ends by then,
//     ctx's error and ErrInProgress in one;
//   - done: the stored result, Replayed.
//
// If fn returns an error, panics, or its result is too large (ErrInvalid), or
// if the lease is lost, nothing is stored and the key is free again at once, or
// as soon as the store has heard of the loss: the next caller runs fn. The error
// of fn comes back as it is. A result is only stored under a live lease: a
// process that was paused for too long gets ErrLost and overwrites nothing, though
// what its fn did may be done twice; hand lease.Token on to whatever can check it.
//
// ErrOutcomeUnknown says that fn has succeeded, but the store did not answer
// when the result was to be stored: it may be kept or not.
func (c *Client) Once(ctx context.Context, key string, opts *OnceOptions, fn func(ctx context.Context, l *Lease) ([]byte, error)) (OnceResult, error) {
	if fn == nil {
		return OnceResult{}, opError("once", key, errNoWork)
	}
	run, result, err := c.OnceBegin(ctx, key, opts)
	if run == nil {
		return result, err
	}
	return run.do(ctx, fn)
}

// newOnce returns the acquisition of a key's lease.
func (c *Client) newOnce(ctx context.Context, key string, o OnceOptions) (*waiter, error) {
	a := &waiter{}
	err := c.prepare(ctx, &a.acquisition, key, &AcquireOptions{
		TTL: o.TTL, Wait: o.Wait, WholeTTL: o.WholeTTL, MaxHold: o.MaxHold, Progress: o.Progress, Reason: o.Reason, Labels: o.Labels, OnWait: o.OnWait,
	}, true)
	if err != nil {
		return nil, err
	}
	a.req.Once = true
	a.req.Holder.Once, a.req.Holder.Fingerprint = true, o.Fingerprint
	return a, nil
}

// compareFingerprints fails if both are given and differ.
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
		err = r.lease.orLost("once", r.lease.Release(ctx), err) // after Complete, this releases nothing
	}()
	value, err := fn(workCtx, r.lease)
	if err != nil {
		return OnceResult{}, err
	}
	return r.Complete(ctx, value)
}

// Check returns an error that wraps ErrInvalid if an option that AcquireOptions does not
// have is out of range; see AcquireOptions.Check.
func (o *OnceOptions) Check() error {
	_, err := o.resolve()
	return err
}

// resolve returns a copy of o with the defaults filled in, or an error that
// wraps ErrInvalid. What becomes part of AcquireOptions is checked there.
func (o *OnceOptions) resolve() (OnceOptions, error) {
	var c OnceOptions
	if o != nil {
		c = *o
	}
	c.Retention, c.MaxResult = cmp.Or(c.Retention, defaultRetention), cmp.Or(c.MaxResult, defaultOnceResult)
	switch {
	case c.Retention < MinTTL || c.Retention > MaxRetention:
		return c, fmt.Errorf("%w Retention %s: want %s to %s", ErrInvalid, c.Retention, MinTTL, MaxRetention)
	case c.MaxResult < 0 || c.MaxResult > MaxOnceResult:
		return c, fmt.Errorf("%w MaxResult %d: want up to %d", ErrInvalid, c.MaxResult, MaxOnceResult)
	case len(c.Fingerprint) > maxFingerprint || !driver.IsText(c.Fingerprint):
		return c, fmt.Errorf("%w Fingerprint: want up to %d bytes of UTF-8 without control characters", ErrInvalid, maxFingerprint)
	case !c.Await && c.Wait != 0:
		return c, fmt.Errorf("%w Wait %s: it needs Await", ErrInvalid, c.Wait)
	}
	c.Retention = ceilMS(c.Retention)
	return c, nil
}
