package holdfast

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The pauses between attempts.
const (
	backoffFirst = 10 * time.Millisecond
	backoffLast  = time.Second
)

// A backoff is a series of growing pauses. The zero backoff is at its start.
type backoff struct{ last time.Duration }

// next returns the next pause: about twice the one before, and random, so that
// those who failed together do not come back together.
func (b *backoff) next(longest time.Duration) time.Duration {
	b.last = min(max(2*b.last, backoffFirst), longest)
	return b.last/2 + rand.N(b.last/2+1)
}

// sleep pauses; it reports false at once when ctx ends.
func (b *backoff) sleep(ctx context.Context) bool {
	timer := time.NewTimer(b.next(backoffLast))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tries is how many requests of untilAnswered fit into the request timeout.
const tries = 3

// untilAnswered repeats a request with an effect until the store has answered,
// or the request timeout is over.
func (c *Client) untilAnswered(ctx context.Context, send func(ctx context.Context) error) error {
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	var backoff backoff
	var unknown error // of a request that may have been carried out unseen
	for {
		once, cancel := context.WithTimeoutCause(ctx, c.opts.RequestTimeout/tries, errNoAnswer)
		err := send(once)
		if err != nil {
			err = effective(once, err)
		}
		cancel()
		if err == nil || isLost(err) {
			return err
		}
		if !certain(err) {
			unknown = err
		}
		if permanent(err) || !backoff.sleep(ctx) {
			return cmp.Or(unknown, err)
		}
	}
}
