package ask

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The pauses between requests that fail.
const (
	FirstPause = 10 * time.Millisecond
	LastPause  = time.Second
)

// A Backoff is a series of growing pauses. The zero Backoff is ready to use.
type Backoff struct {
	First time.Duration // default: FirstPause
	last  time.Duration
}

// Next returns the next pause: about twice the last one, with random jitter, so that clients
// that failed together do not retry together.
func (b *Backoff) Next(longest time.Duration) time.Duration {
	b.last = min(max(2*b.last, cmp.Or(b.First, FirstPause)), longest)
	return b.last/2 + rand.N(b.last/2+1)
}

// Sleep sleeps for the next pause. It returns false as soon as ctx ends.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next(LastPause)) }

// Sleep returns true after d, or false as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
