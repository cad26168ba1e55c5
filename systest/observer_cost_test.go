package systest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestObserverCost checks that an Observer costs one allocation per lease and little time per
// event. The time is processor time of all goroutines of this process, so it does not depend on the
// machine's load.
func TestObserverCost(t *testing.T) {
	var told atomic.Int64
	observers := map[string]holdfast.Observer{"off": nil, "on": func(holdfast.Event) { told.Add(1) }}
	pair := func(client *holdfast.Client) {
		lease, err := client.TryAcquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	allocs, took := map[string]float64{}, map[string]time.Duration{}
	for what, observer := range observers {
		client := newClient(t, mem.New(nil), &holdfast.Options{Observer: observer})
		allocs[what] = testing.AllocsPerRun(1000, func() { pair(client) })
	}
	if more := allocs["on"] - allocs["off"]; more > 1 {
		t.Errorf("%.0f allocations with an Observer, %.0f without, want one more at most", allocs["on"], allocs["off"])
	}
	const rounds, pairs = 50, 1000
	for range rounds {
		for what, observer := range observers {
			client := newClient(t, mem.New(nil), &holdfast.Options{Observer: observer})
			before := ownTime(t)
			for range pairs {
				pair(client)
			}
			closeClient(t, client) // waits for the Observer
			took[what] += ownTime(t) - before
		}
	}
	on, off := took["on"]/rounds/pairs, took["off"]/rounds/pairs
	t.Logf("acquire and release: %s without an Observer, %s with one; %.0f and %.0f allocations", off, on, allocs["off"], allocs["on"])
	if on > 5*off || told.Load() == 0 {
		t.Errorf("acquire and release take %s with an Observer, %s without; it received %d events", on, off, told.Load())
	}
}
