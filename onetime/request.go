package onetime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// tries is how many requests without an answer fit into the request timeout.
const tries = 3

// The pauses between requests that fail at once.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// errNoAnswer is the cause of our own time limits. It deliberately is no
// context error: the caller's context has not ended.
var errNoAnswer = errors.New("no answer within the request timeout")

// A failure is why the store has not answered.
type failure struct {
	// last is of the last request, or of the caller's context.
	last error
	// doubt is of the last request that may have been carried out unseen; nil
	// if there was none.
	doubt error
}

// repeat sends a request until the store has answered it, another one would
// fail in the same way, ctx ends, or Options.RequestTimeout is over. It returns
// nil when it is answered. INVARIANT I6: send sends the same request each time.
func (s *Service) repeat(ctx context.Context, send func(context.Context) error) *failure {
	if ctx.Err() != nil {
		return &failure{last: contextError(ctx)}
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.RequestTimeout, errNoAnswer)
	defer cancel()
	var f failure
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		f.last = s.sendOnce(limited, send)
		switch {
		case f.last == nil:
			return nil
		case !certain(f.last):
			f.doubt = f.last
		}
		if permanent(f.last) {
			return &f
		}
		if !sleep(limited, pause/2+rand.N(pause/2)) {
			break
		}
	}
	if ctx.Err() != nil {
		f.last = contextError(ctx)
	}
	return &f
}

// sendOnce sends a request for its share of the request timeout.
func (s *Service) sendOnce(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.RequestTimeout/tries, errNoAnswer)
	defer cancel()
	err := send(ctx)
	if err != nil && !certain(err) && context.Cause(ctx) == errNoAnswer {
		return errNoAnswer
	}
	return err
}

// effective is the error of a request with an effect that matters: if any copy
// of it may have been carried out, nobody knows the outcome, whatever the last
// one met.
func (f *failure) effective() error {
	if f.doubt != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, f.doubt)
	}
	return f.last
}

// harmless is the error of a request that reads, or whose effect nobody can see
// unless it is answered.
func (f *failure) harmless(ctx context.Context) error {
	if ctx.Err() != nil || certain(f.last) {
		return f.last
	}
	return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, f.last)
}

// certain reports whether err says that the request was not carried out.
func certain(err error) bool {
	return permanent(err) || errors.Is(err, holdfast.ErrUnavailable)
}

// permanent reports whether the same request would fail in the same way.
func permanent(err error) bool {
	for _, e := range []error{holdfast.ErrInvalid, holdfast.ErrUnsupported, holdfast.ErrPermission, holdfast.ErrKindMismatch, holdfast.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// contextError returns ctx's error together with its cause, if that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// sleep returns true after d, or false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
