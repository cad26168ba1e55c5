package holdfast

import (
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
