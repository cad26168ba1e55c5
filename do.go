package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Do acquires the lock as Acquire does, runs work, and releases the lock,
// even if work panics or calls runtime.Goexit.
//
// The context of work ends when ctx does and when the lease is lost, with a
// cause that is ErrLost; work must then stop. Do returns the error of work. If
// the lease was lost while work ran, the error is ErrLost as well, even if
// work returned nil: another holder may have worked at the same time. It has the reason, too:
// it is ErrMaxHold, ErrStalled, or ErrBroken, a *BrokenError with author and reason, or
// ErrClosed if Close has released the lease meanwhile. A
// release that the store does not answer is not an error, because the work
// was protected to its end; the lock is free at the lease's expiry at the
// latest.
func (c *Client) Do(ctx context.Context, name string, opts *AcquireOptions, work func(ctx context.Context, l *Lease) error) error {
	_, err := call(ctx, c, name, opts, true, withoutValue(work))
	return err
}

// TryDo is Do without waiting: it skips work that another holder does. If another
// holder has the lock it returns at once a *HeldError with the holder and the time left, as
// TryAcquire does.
func (c *Client) TryDo(ctx context.Context, name string, opts *AcquireOptions, work func(ctx context.Context, l *Lease) error) error {
	_, err := call(ctx, c, name, opts, false, withoutValue(work))
	return err
}

// Call is Do for work that returns a value.
func Call[T any](ctx context.Context, c *Client, name string, opts *AcquireOptions, work func(ctx context.Context, l *Lease) (T, error)) (T, error) {
	return call(ctx, c, name, opts, true, work)
}

// TryCall is TryDo for work that returns a value.
func TryCall[T any](ctx context.Context, c *Client, name string, opts *AcquireOptions, work func(ctx context.Context, l *Lease) (T, error)) (T, error) {
	return call(ctx, c, name, opts, false, work)
}

// errNoWork is the error of a function that is nil.
var errNoWork = fmt.Errorf("%w work: it is nil", ErrInvalid)

func call[T any](ctx context.Context, c *Client, name string, opts *AcquireOptions, waits bool, work func(context.Context, *Lease) (T, error)) (v T, err error) {
	if work == nil {
		return v, opError("do", name, errNoWork)
	}
	lease, err := c.acquire(ctx, name, opts, waits)
	if err != nil {
		return v, err
	}
	workCtx, stop := lease.attach(ctx)
	defer func() {
		stop()
		closed := lease.closedBefore()
		err = lease.orLost("do", cmp.Or(lease.Release(ctx), closed), err)
	}()
	return work(workCtx, lease)
}

// withoutValue adapts work without a value to call. It returns nil for nil.
func withoutValue(work func(context.Context, *Lease) error) func(context.Context, *Lease) (struct{}, error) {
	if work == nil {
		return nil
	}
	return func(ctx context.Context, l *Lease) (struct{}, error) { return struct{}{}, work(ctx, l) }
}

// orLost returns err, the error of the work under the lease. If the lease was lost meanwhile, it
// adds why. released is the error of Release, which may be the first to report the loss.
func (l *Lease) orLost(op string, released, err error) error {
	if !isLost(released) {
		return err
	}
	why := cmp.Or(l.lostBefore(), l.closedBefore(), errors.Unwrap(released), ErrLost)
	switch {
	case err == nil, err == why:
		return opError(op, l.name, fmt.Errorf("while the work ran: %w", why))
	case errors.Is(err, why): // the work has returned the reason itself
		return err
	}
	return opError(op, l.name, fmt.Errorf("while the work ran: %w; the work returned: %w", why, err))
}
