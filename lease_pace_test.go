package holdfast_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A granter grants everything and counts renewals: for more leases than a real
// store could hold in a short test.
type granter struct {
	*memlock.Engine
	token, renewals atomic.Uint64

	server           chan struct{} // if not nil, has room for one request that is carried out, for 1 ms
	requests, queued atomic.Int64
	longest          atomic.Int64 // of the queue
	down             atomic.Bool
}

func (g *granter) Acquire(context.Context, driver.AcquireRequest) (driver.AcquireReply, error) {
	return driver.AcquireReply{Outcome: driver.Granted, Token: g.token.Add(1)}, nil
}

func (g *granter) Extend(_ context.Context, reqs []driver.ExtendRequest) []error {
	g.renewals.Add(uint64(len(reqs)))
	errs := make([]error, len(reqs))
	if g.server != nil {
		g.requests.Add(1)
		if n := g.queued.Add(1); n > g.longest.Load() {
			g.longest.Store(n)
		}
		g.server <- struct{}{}
		time.Sleep(time.Millisecond)
		<-g.server
		g.queued.Add(-1)
	}
	if g.down.Load() {
		for i := range errs {
			errs[i] = driver.ErrUnavailable
		}
	}
	return errs
}

func (g *granter) Release(context.Context, driver.ReleaseRequest) error { return nil }

// A lease is renewed every 5 s, or by its TTL if that is sooner. That costs a
// client 200 renewals a second at most, unless the TTLs ask for more.
func TestPace(t *testing.T) {
	for _, tc := range []struct {
		leases      int
		ttl         time.Duration
		least, most float64 // renewals a second
	}{
		{1, 10 * time.Minute, 0.18, 0.21},
		{1, 15 * time.Second, 0.18, 0.22},
		{1, 6 * time.Second, 0.45, 0.55},
		{900, time.Minute, 170, 200},
		{1100, time.Minute, 170, 205},
		{3000, time.Minute, 170, 205},
		{3000, 30 * time.Second, 290, 330},       // 10 s are a third of the TTL
		{20_000, 30 * time.Second, 1_950, 2_200}, // likewise
	} {
		t.Run(fmt.Sprintf("%d of %s", tc.leases, tc.ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := &granter{Engine: memlock.New()}
				c := newClient(t, engine, &holdfast.Options{TTL: tc.ttl})
				for i := range tc.leases {
					mustAcquire(t, c, fmt.Sprint(i), nil)
					if i%10 == 0 {
						time.Sleep(100 * time.Second / time.Duration(tc.leases))
					}
				}
				const span = time.Minute
				synctest.Wait()
				before := engine.renewals.Load()
				time.Sleep(span)
				synctest.Wait()
				rate := float64(engine.renewals.Load()-before) / span.Seconds()
				if t.Logf("%.2f renewals a second", rate); rate < tc.least || rate > tc.most {
					t.Errorf("%.2f renewals a second, want %.2f to %.2f", rate, tc.least, tc.most)
				}
			})
		})
	}
}

// Leases with a long TTL are told of their loss within 5 s.
func TestKeepAliveTellsLongLeases(t *testing.T) {
	for _, ttl := range []time.Duration{16 * time.Second, time.Minute, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, &holdfast.Options{TTL: ttl})
			l := mustAcquire(t, c, "a", nil)
			extended := mustAcquire(t, c, "b", nil)
			if err := extended.Extend(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl)
			engine.set(fail(driver.ErrUnavailable, "extend"), nil)
			time.Sleep(10 * time.Second) // a blip, with many renewals that fail
			engine.heal()
			takeAway(t, engine.Engine, "a")
			takeAway(t, engine.Engine, "b")
			start := time.Now()
			<-l.Context().Done()
			<-extended.Context().Done()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("TTL %s: told after %s, want within 5s", ttl, took)
			}
		})
	}
}

// Whatever makes many leases due at the same time, their renewals do not stay
// together, and do not queue up in front of what else the server has to do.
// Requests are as full as they can be nevertheless.
func TestManyRenewalsAreSpread(t *testing.T) {
	const leases, ttl = 5_000, 30 * time.Second
	for what, tc := range map[string]struct {
		taken   time.Duration // for how long all of them are taken
		outage  time.Duration // after a minute
		longest int64         // queue of requests
	}{
		"taken evenly":    {taken: ttl / 3, longest: 3},
		"taken at once":   {longest: 12},
		"after an outage": {taken: ttl / 3, outage: 2 * ttl / 5, longest: 12},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := &granter{Engine: memlock.New(), server: make(chan struct{}, 1)}
				c := newClient(t, engine, &holdfast.Options{TTL: ttl})
				all := make([]*holdfast.Lease, leases)
				for i := range all {
					all[i] = mustAcquire(t, c, fmt.Sprint(i), nil)
					time.Sleep(tc.taken / leases)
				}
				time.Sleep(time.Minute)
				engine.down.Store(tc.outage > 0)
				time.Sleep(tc.outage)
				engine.down.Store(false)
				time.Sleep(ttl / 2) // all have been renewed in a hurry
				engine.longest.Store(0)
				renewals, requests := engine.renewals.Load(), engine.requests.Load()
				time.Sleep(2 * time.Minute)
				renewals, requests = engine.renewals.Load()-renewals, engine.requests.Load()-requests
				for _, l := range all {
					if !l.Valid() {
						t.Fatalf("%s is lost: %v", l.Name(), context.Cause(l.Context()))
					}
				}
				each := float64(renewals) / float64(requests)
				t.Logf("requests of %.1f renewals, %d at once", each, engine.longest.Load())
				if each < 0.95*driver.MaxBatch || engine.longest.Load() > tc.longest {
					t.Errorf("requests of %.1f renewals, and %d at once; want about %d, and %d at most", each, engine.longest.Load(), driver.MaxBatch, tc.longest)
				}
			})
		})
	}
}
