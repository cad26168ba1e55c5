package holdfast_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A refresher counts refreshes and the places that they are of.
type refresher struct {
	*memlock.Engine
	requests, places atomic.Int64
	ttl              atomic.Int64 // of the latest place
}

func (r *refresher) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	r.requests.Add(1)
	r.places.Add(int64(len(reqs)))
	r.ttl.Store(int64(reqs[len(reqs)-1].WaiterTTL))
	return r.Engine.Refresh(ctx, reqs)
}

// The more waiters a client has, the longer their places last, up to the TTL: what
// the store has to do for them does not grow as their number does.
func TestManyPlacesAreRefreshedSlowly(t *testing.T) {
	for _, tc := range []struct {
		waiters int
		ttl     time.Duration
		most    float64 // refreshes a second
	}{
		{100, 30 * time.Second, 70},
		{1000, 30 * time.Second, 700},
		{5000, 30 * time.Second, 2400},
		{5000, 5 * time.Second, 3400}, // a place never outlasts what a lease does
	} {
		t.Run(fmt.Sprintf("%d of %s", tc.waiters, tc.ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := &refresher{Engine: memlock.New()}
				c := newClient(t, engine, &holdfast.Options{TTL: tc.ttl})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range tc.waiters {
					name := fmt.Sprint(i)
					mustAcquireElsewhere(t, engine, name)
					all.Go(func() {
						if l, err := c.Acquire(ctx, name, nil); err == nil {
							t.Errorf("%s is ours", l.Name())
						}
					})
				}
				time.Sleep(20 * time.Second)
				places, requests := engine.places.Load(), engine.requests.Load()
				const span = 30 * time.Second
				time.Sleep(span)
				places, requests = engine.places.Load()-places, engine.requests.Load()-requests
				cancel()
				all.Wait()
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, _ = c.Acquire(ctx, "0", nil)
				if ttl := time.Duration(engine.ttl.Load()); ttl != 5*time.Second {
					t.Errorf("the place of one waiter lasts %s when the others are gone, want 5s", ttl)
				}
				rate, each := float64(places)/span.Seconds(), float64(places)/float64(requests)
				t.Logf("%.1f refreshes a second, %.1f in a request", rate, each)
				if rate > tc.most || tc.waiters > 1000 && each < 0.9*driver.MaxBatch {
					t.Errorf("%.1f refreshes a second, %.1f in a request; want %.0f at most, and about %d", rate, each, tc.most, driver.MaxBatch)
				}
			})
		})
	}
}

// mustAcquireElsewhere takes a lock for another client, for an hour.
func mustAcquireElsewhere(t *testing.T, engine driver.Engine, name string) {
	t.Helper()
	req := driver.AcquireRequest{Name: name, LeaseID: driver.NewLeaseID(), TTL: time.Hour}
	if reply, err := engine.Acquire(t.Context(), req); err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("%s: %+v, %v", name, reply, err)
	}
}
