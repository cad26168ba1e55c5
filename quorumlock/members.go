package quorumlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A result is one member's answer.
type result[T any] struct {
	from  int
	value T
	err   error
}

// A request sends the same request to one member, by its index.
type request[T any] func(ctx context.Context, member int) (T, error)

// sendAll sends a request to all members at once. The channel has room for all answers: the caller
// may stop reading at any time, and each request continues until its answer or timeout. Its context
// is not the caller's: after the caller has returned, a slow member's grant must still be found, to
// be withdrawn or repaired.
func sendAll[T any](e *engine, timeout time.Duration, send request[T]) <-chan result[T] {
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

// next waits for an answer. It fails when the caller or the engine ends. When grace fires, which
// may be nil, it returns enough without an answer.
func next[T any](ctx context.Context, e *engine, answers <-chan T, grace <-chan time.Time) (answer T, enough bool, err error) {
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

// A collection has the answers of the members, and the errors of those that failed.
type collection[T any] struct {
	answers []T
	errs    []error
}

// collect sends a request to all members and collects answers. When a majority has answered and
// enough returns true, it waits a moment longer for the others; enough also returns the least
// length of that moment. If enough is nil, collect waits for all members. It is for requests that
// need no clean-up: reads, and requests that any majority can answer. The error is from the
// caller's context or from Close; errors of members are in the collection.
func collect[T any](ctx context.Context, e *engine, timeout time.Duration, send request[T], enough func([]T) (bool, time.Duration)) (h collection[T], err error) {
	answers, began := sendAll(e, timeout, send), time.Now()
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
			h.errs = append(h.errs, a.err)
		}
	}
	return h, nil
}

// collectMajority collects the answers of any majority.
func collectMajority[T any](ctx context.Context, e *engine, send request[T]) (collection[T], error) {
	return collect(ctx, e, e.timeout(0), send, func([]T) (bool, time.Duration) { return true, 0 })
}

// read returns the answers of any majority, or an error that says why there is none.
func read[T any](ctx context.Context, e *engine, send request[T]) ([]T, error) {
	h, err := collectMajority(ctx, e, send)
	if err == nil && len(h.answers) < e.quorum {
		err = e.missing(h.errs)
	}
	return h.answers, err
}

// timeout returns how long a member may take to answer a request about a lease of ttl. If ttl is 0,
// no lease depends on the answer.
func (e *engine) timeout(ttl time.Duration) time.Duration {
	switch {
	case e.opts.Timeout > 0:
		return e.opts.Timeout
	case ttl == 0:
		return maxTimeout // no lease depends on it
	}
	return min(max(ttl/10, minTimeout), maxTimeout)
}

// graceAfter returns how long to wait for answers that are useful but not needed: as long as the
// request has taken, within bounds. A member that takes more than twice as long as a majority adds
// no delay.
func graceAfter(began time.Time) time.Duration {
	return min(max(time.Since(began), time.Millisecond), 4*time.Millisecond)
}

// patience is how long to wait for such answers if the others leave the outcome in doubt. A silent
// member then adds this delay.
const patience = 50 * time.Millisecond
