package systest

import (
	"fmt"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// How often the client may allocate on Redis: for a lock that is free, taken and
// given back, and to renew a lease in a full batch. Under the race detector pools
// forget some of what they were given.
const (
	pairAllocates    = 22
	renewalAllocates = 3
	raceForgets      = 11
)

// TestClientCost: how often the client allocates does not creep up.
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
