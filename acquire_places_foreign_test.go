package holdfast_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// occupied is a store whose locks foreign clients have.
type occupied struct {
	*scripted
	left   func() time.Duration // of the foreign lock
	places atomic.Int64         // how many were refreshed
}

func (o *occupied) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	o.places.Add(int64(len(reqs)))
	now := scripted{faulty: o.faulty, held: o.held}
	now.held.ExpiresIn = o.left()
	return now.Refresh(ctx, reqs)
}

// A foreign client tells nobody that it gave the lock back: the first of the
// queue looks for that, often while such clients come and go, less often while
// one stays, and all of a client's together no more than 200 times a second.
func TestHeadLooksForForeignClients(t *testing.T) {
	const span = 5 * time.Second
	tests := map[string]struct {
		names       int
		place       int
		left        func(began time.Time) time.Duration
		least, most int64 // places refreshed in span
	}{
		"one stays":        {1, 1, func(began time.Time) time.Duration { return time.Hour - time.Since(began) }, 95, 105},
		"one without end":  {1, 1, func(time.Time) time.Duration { return driver.Never }, 95, 105},
		"they come and go": {1, 1, func(time.Time) time.Duration { return 8 * time.Second }, 480, 500},
		"not the head":     {1, 2, func(time.Time) time.Duration { return 8 * time.Second }, 2, 5},
		"100 names":        {100, 1, func(time.Time) time.Duration { return 8 * time.Second }, 900, 1100},
		"2,000 names":      {2000, 1, func(time.Time) time.Duration { return 8 * time.Second }, 4000, 9000}, // as their waiter TTL wants it
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				engine := &occupied{
					scripted: &scripted{faulty: newFaulty(), held: driver.Blocker{Place: tt.place, Foreign: true, ExpiresIn: tt.left(began)}},
					left:     func() time.Duration { return tt.left(began) },
				}
				c := newClient(t, engine, nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var waiting []<-chan outcome
				for i := range tt.names {
					waiting = append(waiting, enqueue(ctx, c, fmt.Sprint(i), nil))
				}
				time.Sleep(span)
				synctest.Wait()
				if looks := engine.places.Load(); looks < tt.least || looks > tt.most {
					t.Errorf("%d looks in %s, want %d to %d", looks, span, tt.least, tt.most)
				}
				cancel()
				for _, w := range waiting {
					wantErr(t, (<-w).err, context.Canceled)
				}
			})
		})
	}
}
