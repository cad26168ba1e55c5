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
// a request whose outcome nobody waits for any more still has to have one.
func ask[T any](e *Engine, timeout time.Duration, to []int, send func(ctx context.Context, member int) (T, error)) <-chan result[T] {
	answers := make(chan result[T], len(to))
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

// hear asks all members, and collects answers until a majority has answered,
// and for a moment longer those of the others.
func hear[T any](ctx context.Context, e *Engine, send func(ctx context.Context, member int) (T, error)) (h hearing[T], err error) {
	began := time.Now()
	answers := ask(e, e.timeout(0), e.all(), send)
	var grace <-chan time.Time
	for range e.members {
		if len(h.answers) >= e.quorum && grace == nil {
			timer := time.NewTimer(graceAfter(began))
			defer timer.Stop()
			grace = timer.C
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
		return maxTimeout
	}
	return min(max(ttl/10, minTimeout), maxTimeout)
}

// graceAfter returns how long answers that would be good to have, but need not
// be waited for, are waited for: as long as the request took so far, within
// bounds.
func graceAfter(began time.Time) time.Duration {
	return min(max(time.Since(began), time.Millisecond), 4*time.Millisecond)
}

// patience is how long such answers are waited for if those that came leave the
// outcome in doubt. It is also what a member costs that is silent by then.
const patience = 50 * time.Millisecond
