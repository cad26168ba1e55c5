package quorumlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A result is one member's answer.
type result[T any] struct {
	from  int
	value T
	err   error
}

// tell sends a request to all members at once. The channel holds all answers:
// whoever asked may stop to listen at any time, and each request runs on until
// it is answered or timeout is over. Its context is not the caller's, because
// a request whose outcome nobody waits for any more still has to have one: what a
// slow member has granted must be found, to be withdrawn or repaired.
func tell[T any](e *Engine, timeout time.Duration, send func(ctx context.Context, member int) (T, error)) <-chan result[T] {
	answers := make(chan result[T], len(e.members)) // no sender waits for a reader
	for i := range e.members {
		e.running.Go(func() {
			ctx, cancel := ask.Limit(e.life, timeout)
			defer cancel()
			value, err := send(ctx, i)
			answers <- result[T]{from: i, value: value, err: err}
		})
	}
	return answers
}

// next waits for an answer. It fails when the caller or the engine ends, and
// says enough, without an answer, when grace is over. Grace may be nil.
func next[T any](ctx context.Context, e *Engine, answers <-chan T, grace <-chan time.Time) (answer T, enough bool, err error) {
	select {
	case answer = <-answers:
	case <-grace:
		enough = true
	case <-ctx.Done():
		err = ctx.Err()
	case <-e.life.Done():
		err = errClosing
	}
	return answer, enough, err
}

// A hearing is what the members have answered.
type hearing[T any] struct {
	answers []T
	errs    []error
	unknown bool // one of those that failed may have carried it out
}

// hear collects answers until those of a majority are enough, and for a moment
// longer those of the others; enough also says how long that moment is at least. If
// enough is nil, all members are heard. It is for requests that need no clean-up:
// those that read, and those that any majority can answer. The error is of the
// caller or of Close; members that fail are in the hearing.
func hear[T any](ctx context.Context, e *Engine, answers <-chan result[T], enough func([]T) (bool, time.Duration)) (h hearing[T], err error) {
	began := time.Now()
	var grace <-chan time.Time
	for range e.members {
		if enough != nil && grace == nil && len(h.answers) >= e.quorum {
			if ok, least := enough(h.answers); ok {
				grace = time.After(max(graceAfter(began), least))
			}
		}
		switch a, over, err := next(ctx, e, answers, grace); {
		case over || err != nil:
			return h, err
		case a.err == nil:
			h.answers = append(h.answers, a.value)
		default:
			h.errs, h.unknown = append(h.errs, a.err), h.unknown || !driver.Definite(a.err)
		}
	}
	return h, nil
}

// hearAny hears any majority, whatever it says.
func hearAny[T any](ctx context.Context, e *Engine, send func(ctx context.Context, member int) (T, error)) (hearing[T], error) {
	return hear(ctx, e, tell(e, e.timeout(0), send), func([]T) (bool, time.Duration) { return true, 0 })
}

// read returns what any majority answers, or why there is none.
func read[T any](ctx context.Context, e *Engine, send func(ctx context.Context, member int) (T, error)) ([]T, error) {
	h, err := hearAny(ctx, e, send)
	if err == nil && len(h.answers) < e.quorum {
		err = e.missing(h.errs)
	}
	return h.answers, err
}

// timeout returns how long a member may take to answer about a lease of ttl,
// or of an unknown one if that is 0.
func (e *Engine) timeout(ttl time.Duration) time.Duration {
	switch {
	case e.opts.Timeout > 0:
		return e.opts.Timeout
	case ttl == 0:
		return maxTimeout // nobody's lease runs out meanwhile
	}
	return min(max(ttl/10, minTimeout), maxTimeout)
}

// graceAfter returns how long answers that would be good to have, but need not
// be waited for, are waited for: as long as the request took so far, within
// bounds. A member that takes twice as long as a majority costs nothing more.
func graceAfter(began time.Time) time.Duration {
	return min(max(time.Since(began), time.Millisecond), 4*time.Millisecond)
}

// patience is how long such answers are waited for if those that came leave the
// outcome in doubt. So that is also what a silent member costs then.
const patience = 50 * time.Millisecond
