// Package ask repeats requests to a store until it answers, and classifies the errors of
// requests that fail.
//
// The error of a request is of one of three classes. Permanent: nothing was done, and the
// same request would fail in the same way. Unavailable: nothing was done, and the same
// request may succeed later. Any other error: the store may or may not have carried the
// request out. driver.Definite recognizes the first two, and driver.Permanent the first.
// An error of the third class becomes driver.ErrUnavailable if the request has no effect
// that matters, and driver.ErrOutcomeUnknown otherwise. INVARIANT I10: each error that is
// made here wraps exactly one of driver's errors, or only the error of the caller's context.
//
// # Concurrency
//
// The package starts no goroutine. A Backoff or a Failure must be used by one goroutine.
package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// timedOut reports whether a limit of this package has ended ctx.
func timedOut(ctx context.Context) bool { return context.Cause(ctx) == ErrNoAnswer }

// ended reports whether the caller's own context has ended.
func ended(ctx context.Context) bool { return ctx.Err() != nil && !timedOut(ctx) }

// Harmless classifies the error of a request that only reads, or whose effect will be
// cancelled. It returns a definite error unchanged, the error of the caller's context if
// that has ended, and otherwise driver.ErrUnavailable. It returns nil for nil. ctx is the
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

// Effective classifies the error of a request with an effect. It returns a definite error
// unchanged, and otherwise driver.ErrOutcomeUnknown, even if the caller's context has ended.
// It returns nil for nil. ctx is the request's own context.
func Effective(ctx context.Context, err error) error {
	if err == nil || driver.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrOutcomeUnknown, hideLimit(ctx, err))
}

// hideLimit replaces a context error that a limit of this package has caused, so that the
// caller does not take it for the end of its own context.
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
