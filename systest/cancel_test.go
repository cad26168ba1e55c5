package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// A sweep cancels acquires after 0, 1, 2, … steps, so that it hits every stage on a network that
// takes oneWay in each direction.
const (
	oneWay     = 15 * time.Millisecond
	sweepStep  = time.Millisecond
	sweepBound = time.Second // for the clean-up, which needs two round trips
)

// cancelAfter acquires name, cancels after delay, and checks that no lease is left. It reports
// whether the lock was acquired.
func cancelAfter(t *testing.T, s *store, client *holdfast.Client, name string, delay time.Duration) (acquired bool) {
	ctx, cancel := context.WithTimeout(t.Context(), delay)
	defer cancel()
	lease, err := client.Acquire(ctx, name, nil)
	switch {
	case err == nil:
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("%s: release: %v", name, err)
		}
	case !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s: %v, want the context's error", name, err)
	}
	if !within(sweepBound, func() bool { return s.holding(t, name).Holder.Label != sweeper }) {
		t.Errorf("%s, cancelled after %s: the key is still there %s later", name, delay, sweepBound)
	}
	return err == nil
}

// sweeper labels the leases of the sweep, to tell them from the rival's.
const sweeper = "sweeper"

// sweep cancels acquires after each number of steps up to last, on several links at once.
func sweep(t *testing.T, s *store, last time.Duration, prepare func(name string) (cleanUp func())) {
	const links = 12
	var acquired, cancelled atomic.Int64
	var all sync.WaitGroup
	clients := make([]*holdfast.Client, links)
	for i := range links {
		l := s.link(t)
		clients[i] = l.client(t, &holdfast.Options{Holder: holdfast.Holder{Label: sweeper}})
		l.OnRequest(func(faultproxy.Request) faultproxy.Action { return faultproxy.Delay(oneWay, oneWay) })
		all.Go(func() {
			for step := i; time.Duration(step)*sweepStep <= last; step += links {
				name := fmt.Sprintf("sweep/%d", step)
				cleanUp := prepare(name)
				if cancelAfter(t, s, clients[i], name, time.Duration(step)*sweepStep) {
					acquired.Add(1)
				} else {
					cancelled.Add(1)
				}
				cleanUp()
			}
		})
	}
	all.Wait()
	for _, client := range clients {
		closeClient(t, client)
	}
	for step := 0; time.Duration(step)*sweepStep <= last; step++ {
		if name := fmt.Sprintf("sweep/%d", step); s.held(t, name) {
			t.Errorf("%s is held after everything has ended", name)
		}
	}
	t.Logf("%d acquires were cancelled, %d were not", cancelled.Load(), acquired.Load())
	if cancelled.Load() < 20 || acquired.Load() < 10 {
		t.Error("the sweep does not reach from the first step to the last")
	}
}

// TestCancelAtEveryStepOfAnAcquire checks that an acquire leaves no key behind at whatever step it
// is cancelled. INVARIANT I5.
func TestCancelAtEveryStepOfAnAcquire(t *testing.T) {
	s := newStore(t)
	sweep(t, s, 4*oneWay, func(string) func() { return func() {} })
}

// TestCancelAtEveryStepOfAWait checks the same for acquires behind a rival that releases midway.
// The steps then include watch, second attempt, wait and wake-up.
func TestCancelAtEveryStepOfAWait(t *testing.T) {
	s := newStore(t)
	rival := newClient(t, s.engine, &holdfast.Options{Holder: holdfast.Holder{Label: "rival"}})
	sweep(t, s, 16*oneWay, func(name string) func() {
		lease, err := rival.TryAcquire(context.Background(), name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return func() {}
		}
		released := make(chan struct{})
		time.AfterFunc(5*oneWay, func() {
			defer close(released)
			if err := lease.Release(context.Background()); err != nil {
				t.Errorf("%s: release of the rival: %v", name, err)
			}
		})
		return func() { <-released }
	})
}

// TestCancelAtRandom checks that contended acquires, each cancelled at a random instant, leave no
// lease, no place and no goroutine. INVARIANT I5.
func TestCancelAtRandom(t *testing.T) {
	const links, names = 16, 8
	s := newStore(t)
	count := soak.Count(800, 10000)
	before := runtime.NumGoroutine()
	var acquired, cancelled atomic.Int64
	var slowest atomic.Int64 // clean-up, in nanoseconds
	t.Run("callers", func(t *testing.T) {
		looker := openEngine(t, s.server.URL) // closed with the callers
		var all sync.WaitGroup
		for i := range links {
			l := s.link(t)
			l.Latency(time.Millisecond)
			client := l.client(t, nil)
			all.Go(func() {
				span := 12 * time.Millisecond // adapted so that about half are cancelled
				for n := range count / links {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(span))
					lease, err := client.Acquire(ctx, fmt.Sprintf("random/%d", (i+n)%names), nil)
					switch {
					case err == nil:
						acquired.Add(1)
						span -= span / 16
						if err := lease.Release(t.Context()); err != nil {
							t.Errorf("release: %v", err)
						}
					case errors.Is(err, context.DeadlineExceeded):
						cancelled.Add(1)
						span += span / 16
					default:
						t.Errorf("acquire: %v", err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		began := time.Now()
		for i := range names {
			name := fmt.Sprintf("random/%d", i)
			if !within(sweepBound, func() bool {
				lock, err := looker.Inspect(t.Context(), name)
				return err == nil && len(lock.Holders) == 0 && lock.QueueLength == 0
			}) {
				t.Errorf("%s has leases or places of nobody %s after the last call", name, sweepBound)
			}
		}
		slowest.Store(int64(time.Since(began)))
	})
	// The clients are closed by now.
	leaked := 0
	if !within(patience, func() bool { leaked = runtime.NumGoroutine() - before; return leaked <= 0 }) {
		t.Errorf("%d goroutines more than before", leaked)
	}
	report.Row(t, "context cancelled at a random instant", "0 orphans after 1 s, 0 goroutines leaked",
		"%d acquires cancelled, %d not; nothing left after %s; %d goroutines leaked",
		cancelled.Load(), acquired.Load(), time.Duration(slowest.Load()).Round(time.Millisecond), max(leaked, 0))
	if cancelled.Load() < 100 || acquired.Load() < 100 {
		t.Error("hardly any, or nearly all, were cancelled: the test proves little")
	}
}
