package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A spender answers that so many lease IDs are spent, and remembers them, and
// what was cancelled.
type spender struct {
	*memlock.Engine
	spend int
	spent []driver.LeaseID

	mu        sync.Mutex // guards the rest
	cancelled map[driver.LeaseID]bool
}

func (s *spender) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if len(s.spent) < s.spend {
		s.spent = append(s.spent, req.LeaseID)
		return driver.AcquireReply{Outcome: driver.Spent}, nil
	}
	return s.Engine.Acquire(ctx, req)
}

func (s *spender) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if req.Cancel {
		s.mu.Lock()
		s.cancelled[req.LeaseID] = true
		s.mu.Unlock()
	}
	return s.Engine.Release(ctx, req)
}

// TestSpentLeaseIDIsReplaced: where the engine says that the lease ID is spent,
// the client cancels it and asks at once under another; but it does not ask
// for ever.
func TestSpentLeaseIDIsReplaced(t *testing.T) {
	for _, test := range []struct {
		spend int
		try   bool
		want  error
		most  time.Duration
	}{
		{1, true, nil, 0},
		{1, false, nil, 0},
		{2, true, holdfast.ErrUnavailable, 0},
		{6, false, nil, time.Second},
		{1 << 20, false, holdfast.ErrUnavailable, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := &spender{Engine: memlock.New(), spend: test.spend, cancelled: map[driver.LeaseID]bool{}}
			c, err := holdfast.New(engine, nil)
			if err != nil {
				t.Fatal(err)
			}
			acquire := c.Acquire
			if test.try {
				acquire = c.TryAcquire
			}
			start := time.Now()
			lease, err := acquire(t.Context(), "a", nil)
			if took := time.Since(start); !errors.Is(err, test.want) || took > test.most {
				t.Errorf("%d spent: %v after %s, want %v within %s", test.spend, err, took, test.want, test.most)
			}
			synctest.Wait()
			seen := map[driver.LeaseID]bool{}
			for _, id := range engine.spent {
				if seen[id] || !engine.cancelled[id] {
					t.Errorf("lease ID %s: asked for again %t, cancelled %t", id, seen[id], engine.cancelled[id])
				}
				seen[id] = true
			}
			if lease != nil {
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}
