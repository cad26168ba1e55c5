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

// Until repeats a request until the store has answered it, another one would
// fail in the same way, ctx ends, or timeout passes: it is UntilEnd with that
// limit, in which each request has its share. If ctx has ended before, it sends
// nothing.
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

// UntilEnd repeats a request until the store has answered it, another one would
// fail in the same way, or ctx ends. Each is given up after timeout. It returns
// nil when the request is answered.
//
// INVARIANT I6: send must send a request of which a repeat has the effect and the
// answer of once.
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

// A Failure is why the store has not answered. Nil is that it has.
type Failure struct {
	// last is of the last request, or of the caller's context if that has ended.
	last  error
	ended bool
	// doubt is of the last request that may have been carried out unseen; nil
	// if there was none.
	doubt error
}

// once sends the request once, for timeout at most, and notes what came of it.
func (f *Failure) once(ctx context.Context, timeout time.Duration, send func(context.Context) error) {
	ctx, cancel := Limit(ctx, timeout)
	defer cancel()
	f.last = send(ctx)
	if f.last != nil && !driver.Definite(f.last) {
		f.last = hideLimit(ctx, f.last)
		f.doubt = f.last
	}
}

// Lost reports whether the store's last answer is that the lease is not live. That
// is an answer, whatever the outcome of the requests before.
func (f *Failure) Lost() bool { return f != nil && errors.Is(f.last, driver.ErrLost) }

// Effective is the error of a request with an effect that matters: if any copy of
// it may have been carried out, the outcome is unknown, whatever the error of the
// last one.
func (f *Failure) Effective() error {
	switch {
	case f == nil:
		return nil
	case f.doubt != nil && !f.Lost():
		return fmt.Errorf("%w: %w", driver.ErrOutcomeUnknown, f.doubt)
	}
	return f.last
}

// Harmless is the error of a request that reads, or whose effect cannot be seen
// until it is answered.
func (f *Failure) Harmless() error {
	switch {
	case f == nil:
		return nil
	case f.ended, driver.Definite(f.last):
		return f.last
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, f.last)
}
