package holdfast

import (
	"context"
	"errors"
	"fmt"
)

// errNoAnswer is the cause of a request's own time limit. It deliberately is
// no context error: the caller's context has not ended.
var errNoAnswer = errors.New("no answer within the request timeout")

// certain reports whether err says that the request was not carried out.
func certain(err error) bool {
	return permanent(err) || errors.Is(err, ErrUnavailable)
}

// permanent reports whether the same request would fail in the same way.
func permanent(err error) bool {
	for _, e := range []error{ErrLost, ErrInvalid, ErrUnsupported, ErrPermission, ErrKindMismatch, ErrClosed, ErrFingerprint, ErrNotReplicated, errRecorded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// requestContext bounds one request to the store.
func (c *Client) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.opts.RequestTimeout, errNoAnswer)
}

// harmless classifies the failure of a request that reads, or whose effect
// will be cancelled: a context's end stays what it is, and everything else
// that is not certain is ErrUnavailable. ctx is the request's own context.
func harmless(ctx context.Context, err error) error {
	switch {
	case certain(err):
		return err
	case ctx.Err() != nil && !timedOut(ctx):
		return contextError(ctx)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, hideTimeout(ctx, err))
}

// effective classifies the failure of a request with an effect: whatever is
// not certain is ErrOutcomeUnknown, a context's end included.
func effective(ctx context.Context, err error) error {
	if certain(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, hideTimeout(ctx, err))
}

// timedOut reports whether the request's own time limit ended ctx.
func timedOut(ctx context.Context) bool { return context.Cause(ctx) == errNoAnswer }

// hideTimeout replaces the context error that the request's own time limit
// caused, so that no caller takes it for the end of his own context.
func hideTimeout(ctx context.Context, err error) error {
	if timedOut(ctx) {
		return errNoAnswer
	}
	return err
}

// contextError returns ctx's error together with its cause, if that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
