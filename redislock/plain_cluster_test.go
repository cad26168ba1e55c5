package redislock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestPlainBesideHungNode checks that in a Redis Cluster, where requests share calls by node, a
// node that hangs delays none of the others, and that its callers return when their time ends.
// INVARIANT I9.
func TestPlainBesideHungNode(t *testing.T) {
	t.Parallel()
	const each, patience, long = 24, 300 * time.Millisecond, 20 * time.Second
	c := testsvc.RedisCluster(t)
	c.Patient()
	e := open(t, c.URL)
	slots := make([]string, len(c.Masters)) // a hash tag for each node
	for i := 0; slots[0] == "" || slots[1] == "" || slots[2] == ""; i++ {
		tag := fmt.Sprintf("{%d}", i)
		slots[c.Owner(tag)] = tag
	}
	pairs := func(slot string, rounds int, limit time.Duration) (all []error) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for g := range each {
			wg.Go(func() {
				for range rounds {
					began := time.Now()
					err := pair(t, e, fmt.Sprint(slot, g), limit)
					if took := time.Since(began); took > 10*limit {
						t.Errorf("%s: it took %s, although the time was over after %s", slot, took, limit)
					}
					mu.Lock()
					all = append(all, err)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return all
	}
	for _, slot := range slots {
		pairs(slot, 1, long) // from now on there are connections, and the nodes know the scripts
	}
	c.Masters[0].Stop()
	defer c.Masters[0].Cont()
	var hung sync.WaitGroup
	hung.Go(func() {
		for _, err := range pairs(slots[0], 2, patience) {
			if err == nil {
				t.Error("a node that is stopped has granted a lock")
			}
			drivertest.WantIs(t, "a request to a node that hangs", err, nil)
		}
	})
	for _, slot := range slots[1:] {
		for _, err := range pairs(slot, 10, long) {
			if err != nil {
				t.Errorf("beside a node that hangs: %v", err)
			}
		}
	}
	hung.Wait()
}

// pair acquires a lock and releases it, within limit.
func pair(t *testing.T, e *Engine, name string, limit time.Duration) error {
	t.Helper()
	req := drivertest.Request(name, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	reply, err := e.Acquire(ctx, req)
	if err != nil {
		return err
	}
	if reply.Outcome != driver.Granted {
		return fmt.Errorf("%s: %+v", name, reply)
	}
	return e.Release(ctx, driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID})
}
