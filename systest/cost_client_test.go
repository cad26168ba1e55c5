package systest

import (
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// The allocations that the client may make on Redis: to acquire and release a free lock, and to
// renew a lease in a full batch. Under the race detector a sync.Pool drops some of its items.
const (
	pairAllocates    = 22
	renewalAllocates = 3
	raceForgets      = 11
)

// TestClientCost checks that the client's allocations do not creep up.
func TestClientCost(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, nil)
	pair := func() {
		lease, err := client.TryAcquire(t.Context(), "pair", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]driver.ExtendRequest, driver.MaxBatch)
	for i := range batch {
		req := request(fmt.Sprint("renewed/", i))
		drivertest.Granted(t, s.engine, req)
		batch[i] = driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL}
	}
	renew := func() {
		for _, err := range s.engine.Extend(t.Context(), batch) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	most := float64(pairAllocates)
	if underRace {
		most += raceForgets
	}
	for _, c := range []struct {
		what string
		each int
		most float64
		run  func()
	}{
		{"a lock that is free, taken and given back", 1, most, pair},
		{"a renewal", len(batch), renewalAllocates, renew},
	} {
		n := testing.AllocsPerRun(2000/c.each, c.run) / float64(c.each)
		t.Logf("%s: %.1f allocations", c.what, n)
		if n > c.most {
			t.Errorf("%s: %.1f allocations, want %.0f at most", c.what, n, c.most)
		}
	}
}
