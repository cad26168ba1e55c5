package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Tries is how many requests without an answer fit into the request timeout of
// Until.
const Tries = 3

// Until repeats a request until the store has answered it, a repeat would fail in the same
// way, ctx ends, or timeout passes. It is UntilEnd with that limit, and gives up each request
// after its share, timeout/Tries. If ctx has ended already it sends nothing.
func Until(ctx context.Context, timeout time.Duration, send func(context.Context) error) *Failure {
	if ended(ctx) {
		return &Failure{last: ContextError(ctx), ended: true}
	}
	ctx, cancel := Limit(ctx, timeout)
	defer cancel()
	return UntilEnd(ctx, timeout/Tries, send)
}

// Answer is Until for a request with a reply. INVARIANT I6: each copy of the request is the same.
func Answer[Req, Reply any](
	ctx context.Context, timeout time.Duration, send func(context.Context, Req) (Reply, error), req Req,
) (reply Reply, f *Failure) {
	f = Until(ctx, timeout, func(ctx context.Context) (err error) {
		reply, err = send(ctx, req)
		return err
	})
	return reply, f
}

// UntilEnd repeats a request until the store has answered it, a repeat would fail in the same
// way, or ctx ends. It gives up each request after timeout. It returns nil when the request
// has succeeded.
//
// INVARIANT I6: a repeat of the request must have the effect and the reply of the first.
func UntilEnd(ctx context.Context, timeout time.Duration, send func(context.Context) error) *Failure {
	var f Failure
	var backoff Backoff
	for {
		f.once(ctx, timeout, send)
		switch {
		case f.last == nil:
			return nil
		case driver.Permanent(f.last):
			return &f
		case backoff.Sleep(ctx):
			continue
		}
		if f.ended = ended(ctx); f.ended {
			f.last = ContextError(ctx)
		}
		return &f
	}
}

// A Failure says why a request has failed. Nil means that it has succeeded.
type Failure struct {
	// last is the error of the last request, or of the caller's context if that has ended.
	last  error
	ended bool // the caller's context has ended
	// unknown is the error of the last request that the store may have carried out, or nil.
	unknown error
}

// once sends the request once, for timeout at most, and notes the result.
func (f *Failure) once(ctx context.Context, timeout time.Duration, send func(context.Context) error) {
	ctx, cancel := Limit(ctx, timeout)
	defer cancel()
	f.last = send(ctx)
	if f.last != nil && !driver.Definite(f.last) {
		f.last = hideLimit(ctx, f.last)
		f.unknown = f.last
	}
}

// Lost reports whether the last reply was ErrLost. That reply is definite even if the outcome of
// earlier requests is unknown. The end of the caller's context does not count, even if its cause is
// the loss of another lease.
func (f *Failure) Lost() bool { return f != nil && !f.ended && errors.Is(f.last, driver.ErrLost) }

// Effective returns the error of a request with an effect that matters. If the store may have
// carried out any copy of it, the outcome is unknown, whatever the error of the last copy,
// unless that is ErrLost.
func (f *Failure) Effective() error {
	switch {
	case f == nil:
		return nil
	case f.unknown != nil && !f.Lost():
		return fmt.Errorf("%w: %w", driver.ErrOutcomeUnknown, f.unknown)
	}
	return f.last
}

// Harmless returns the error of a request that only reads, or whose effect nothing depends on
// until the request is answered.
func (f *Failure) Harmless() error {
	switch {
	case f == nil:
		return nil
	case f.ended, driver.Definite(f.last):
		return f.last
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, f.last)
}
