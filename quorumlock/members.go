package quorumlock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// all returns the indexes of the members.
func (e *Engine) all() []int {
	all := make([]int, len(e.members))
	for i := range all {
		all[i] = i
	}
	return all
}

// A result is one member's answer.
type result[T any] struct {
	from  int
	value T
	err   error
}

// ask sends a request to some members at once. The channel holds all answers:
// whoever asked may stop to listen at any time, and each request runs on until
// it is answered or timeout is over. Its context is not the caller's, because
// a request whose outcome nobody waits for any more still has to have one: what a
// slow member has granted must be found, to be withdrawn or repaired.
func ask[T any](e *Engine, timeout time.Duration, to []int, send func(ctx context.Context, member int) (T, error)) <-chan result[T] {
	answers := make(chan result[T], len(to)) // no sender waits for a reader
	for _, i := range to {
		e.running.Go(func() {
			ctx, cancel := context.WithTimeout(e.life, timeout)
			defer cancel()
			value, err := send(ctx, i)
			answers <- result[T]{from: i, value: value, err: err}
		})
	}
	return answers
}

// A hearing is what the members have answered.
type hearing[T any] struct {
	answers []T
	errs    []error
	unknown bool // one of those that failed may have carried it out
}

// hear asks all members, and collects answers until those of a majority are
// enough, and for a moment longer those of the others. It is for requests that any
// majority can answer, and that need no clean-up: those that read, and Break. The
// error is of the caller or of Close; members that fail are in the hearing.
func hear[T any](ctx context.Context, e *Engine, send func(ctx context.Context, member int) (T, error)) (h hearing[T], err error) {
	return hearUntil(ctx, e, send, func([]T) (bool, time.Duration) { return true, 0 })
}

// hearUntil is hear with a word in what is enough, and in how long the others are
// waited for at least.
func hearUntil[T any](ctx context.Context, e *Engine, send func(ctx context.Context, member int) (T, error), enough func([]T) (bool, time.Duration)) (h hearing[T], err error) {
	began := time.Now()
	answers := ask(e, e.timeout(0), e.all(), send)
	var grace <-chan time.Time
	for range e.members {
		if len(h.answers) >= e.quorum && grace == nil {
			if ok, least := enough(h.answers); ok {
				timer := time.NewTimer(max(graceAfter(began), least))
				defer timer.Stop()
				grace = timer.C
			}
		}
		select {
		case a := <-answers:
			if a.err == nil {
				h.answers = append(h.answers, a.value)
				continue
			}
			h.errs, h.unknown = append(h.errs, a.err), h.unknown || !driver.Definite(a.err)
		case <-grace:
			return h, nil
		case <-ctx.Done():
			return h, ctx.Err()
		case <-e.life.Done():
			return h, errClosing
		}
	}
	return h, nil
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
// outcome in doubt. It is also what a member costs that is silent by then.
const patience = 50 * time.Millisecond
