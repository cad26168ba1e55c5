package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// stormClients opens an engine of each kind at an address.
var stormClients = map[string]func(t *testing.T, addr string) driver.Engine{
	"redislock": func(t *testing.T, addr string) driver.Engine {
		e, err := redislock.Open(t.Context(), "redis://"+addr)
		if err != nil {
			t.Fatal(err)
		}
		return e
	},
	"goredislock": func(t *testing.T, addr string) driver.Engine {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 20})
		t.Cleanup(func() { _ = client.Close() })
		e, err := goredislock.New(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	},
}

// TestCancelStorm checks that thousands of cancelled acquires leave no leases behind, although the
// network loses replies, closes and resets connections, and stalls. INVARIANT I5. With a pool of a
// few connections, a cancel must neither need a connection of its own nor wait for a silent one.
func TestCancelStorm(t *testing.T) {
	for name, open := range stormClients {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			runs, slowest := soak.Count(1, 30), time.Duration(0)
			for run := range runs {
				slowest = max(slowest, s.storm(t, fmt.Sprintf("storm/%d/", run), open))
			}
			report.Row(t, "3,000 acquires cancelled on a failing network, "+name, "0 orphans after 6 s",
				"%d runs; nothing left after %s at most", runs, slowest.Round(10*time.Millisecond))
		})
	}
}

// storm is one run. It returns how long after the last fault the leases were gone.
func (s *store) storm(t *testing.T, prefix string, open func(t *testing.T, addr string) driver.Engine) time.Duration {
	p := faultproxy.New(t, s.server.Addr)
	engine := open(t, p.Addr())
	// The TTL is so long that no lease expires during the test.
	client, err := holdfast.New(engine, &holdfast.Options{TTL: 5 * time.Minute, SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	calm := raise(p)
	cancelMany(t, client, prefix, 3000, 64)
	calm()
	began, bound := time.Now(), patience
	if soak.Long() { // on a machine with nothing else to do
		bound = 6 * time.Second
	}
	left := 0
	if !within(bound, func() bool { left = s.leasesOf(t, prefix); return left == 0 }) {
		t.Errorf("%d locks that nobody holds, %s after the last fault", left, bound)
	}
	took := time.Since(began)
	closeClient(t, client)
	return took
}

// raise injects faults of every kind into a proxy until calm is called.
func raise(p *faultproxy.Proxy) (calm func()) {
	p.OnRequest(func(faultproxy.Request) faultproxy.Action {
		fates := map[int]faultproxy.Action{
			0: {Reply: faultproxy.Swallow}, 1: {Reply: faultproxy.Swallow}, 2: {Reply: faultproxy.Close},
			3: {Reply: faultproxy.Reset}, 4: {Reply: faultproxy.BlackHole}, 5: {Strand: true},
		}
		return fates[rand.N(100)] // none, mostly
	})
	end := make(chan struct{})
	var stalls sync.WaitGroup
	stalls.Go(func() {
		for silent := false; ; silent = !silent {
			select {
			case <-end:
				p.Heal()
				return
			case <-time.After(300 * time.Millisecond):
			}
			if silent {
				p.Heal()
			} else {
				p.BlackHole()
			}
		}
	})
	return func() {
		close(end)
		stalls.Wait()
		p.OnRequest(nil)
	}
}

// cancelMany acquires count names, atATime of them concurrently, and cancels each within 40 ms.
func cancelMany(t *testing.T, client *holdfast.Client, prefix string, count, atATime int) {
	numbers := make(chan int)
	var callers sync.WaitGroup
	for range atATime {
		callers.Go(func() {
			for i := range numbers {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(40*time.Millisecond))
				if lease, err := client.Acquire(ctx, fmt.Sprint(prefix, i), nil); err == nil {
					_ = lease.Release(ctx) // an unanswered release continues in the background
				}
				cancel()
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	callers.Wait()
}

// leasesOf returns how many locks with a prefix are held.
func (s *store) leasesOf(t *testing.T, prefix string) (n int) {
	for lock, err := range s.engine.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if len(lock.Holders) > 0 {
			n++
		}
	}
	return n
}
