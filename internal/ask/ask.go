// Package ask sends requests to a store until they are answered, and reports what
// a request that failed has done.
//
// The error of a request is of one of three classes: permanent (nothing was
// done, and the same request would fail in the same way), unavailable (nothing
// was done, and the same request may succeed later), and every other, which
// leaves it open whether the store has carried the request out. Package driver
// has the first two, as Definite and Permanent. What is open becomes
// driver.ErrUnavailable where it does not matter, and driver.ErrOutcomeUnknown
// where it does. INVARIANT I10: each error that is made here wraps exactly one
// of driver's, or nothing but the error of the caller's own context.
//
// # Concurrency
//
// Nothing here starts a goroutine. A Backoff and a Failure belong to one.
package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// timedOut reports whether it was a limit of ours that ended ctx.
func timedOut(ctx context.Context) bool { return context.Cause(ctx) == ErrNoAnswer }

// ended reports whether the caller's own context has ended.
func ended(ctx context.Context) bool { return ctx.Err() != nil && !timedOut(ctx) }

// Harmless classifies the error of a request that reads, or whose effect will
// be cancelled: the end of the caller's context stays what it is, and everything
// else that is not definite is driver.ErrUnavailable. No error is none. ctx is the
// request's own context.
func Harmless(ctx context.Context, err error) error {
	switch {
	case err == nil, driver.Definite(err):
		return err
	case ended(ctx):
		return ContextError(ctx)
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, hideLimit(ctx, err))
}

// Effective classifies the error of a request with an effect: whatever is not
// definite is driver.ErrOutcomeUnknown, the end of the caller's context included. No
// error is none. ctx is the request's own context.
func Effective(ctx context.Context, err error) error {
	if err == nil || driver.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrOutcomeUnknown, hideLimit(ctx, err))
}

// hideLimit replaces the context error that a limit of ours has caused, so that
// no caller takes it for the end of its own context.
func hideLimit(ctx context.Context, err error) error {
	if timedOut(ctx) {
		return ErrNoAnswer
	}
	return err
}

// ContextError returns the error of a context that has ended, together with its
// cause if the cause adds something.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
