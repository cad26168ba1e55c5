package systest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// The share of the throughput that history may cost. The goal is what the report states. With 64
// goroutines the cost exceeds it, because one command in a script is 10 % of the server's 8 µs per
// pair. The bound keeps the cost from growing.
const (
	historyGoal = 0.1
	historyMost = 0.3
)

// A paired client acquires and releases locks, one per goroutine.
type paired struct {
	client *holdfast.Client
	rates  []float64 // pairs a second, in each round
	cpu    []float64 // µs of the server's processor time per pair
}

// round acquires and releases for length, and records rate and processor time.
func (p *paired) round(t *testing.T, s *store, goroutines int, length time.Duration) {
	t.Helper()
	var pairs atomic.Int64
	var wg sync.WaitGroup
	before, began := cpuTime(t, s.server), time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for name := fmt.Sprint("pairs/", g); time.Since(began) < length; pairs.Add(1) {
				lease, err := p.client.TryAcquire(t.Context(), name, nil)
				if err == nil {
					err = lease.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := float64(pairs.Load())
	p.rates = append(p.rates, n/time.Since(began).Seconds())
	p.cpu = append(p.cpu, (cpuTime(t, s.server)-before)*1e6/n)
}

// TestHistoryCost measures what history costs of the throughput, in alternating rounds with and
// without it. Only a soak judges that, because other work disturbs it. Requests and commands are
// always checked.
func TestHistoryCost(t *testing.T) {
	s := newStore(t)
	with := openEngine(t, s.server.URL+"?history=1&prefix=with:")
	count := func(e *redislock.Engine) (requests, inner int) {
		t.Helper()
		drivertest.Cycle(t, e, "counted") // now the server knows the scripts
		s.do(t, "CONFIG", "RESETSTAT")
		const cycles = 10
		for range cycles {
			drivertest.Cycle(t, e, "counted")
		}
		return s.calls(t, "evalsha") / cycles, s.inScripts(t) / cycles
	}
	for what, e := range map[string]*redislock.Engine{"without": s.engine, "with": with} {
		requests, inner := count(e)
		most := map[string]int{"without": 8, "with": 13}[what]
		t.Logf("%s history a pair is %d requests, and %d commands inside scripts", what, requests, inner)
		if requests != 2 || inner > most {
			t.Errorf("%s history a pair is %d requests, and %d commands inside scripts, want 2, and %d at most", what, requests, inner, most)
		}
	}
	for _, goroutines := range []int{1, 64} {
		off, on := &paired{client: newClient(t, s.engine, nil)}, &paired{client: newClient(t, with, nil)}
		for range soak.Count(9, 150) {
			off.round(t, s, goroutines, 50*time.Millisecond)
			on.round(t, s, goroutines, 50*time.Millisecond)
		}
		lost := 1 - median(on.rates)/median(off.rates)
		text := fmt.Sprintf("%.0f pairs a second without and %.0f with it: %.1f %% less; the server took %.1f µs for a pair, and %.1f",
			median(off.rates), median(on.rates), 100*lost, median(off.cpu), median(on.cpu))
		t.Logf("%d goroutines: %s", goroutines, text)
		report.Row(t, fmt.Sprintf("history of each name, %d goroutines", goroutines), fmt.Sprintf("goal: %.0f %% of the throughput at most", 100*historyGoal), "%s", text)
		if soak.Long() && !underRace && lost > historyMost {
			t.Errorf("%d goroutines: history costs %.1f %% of the throughput, want %.0f %% at most", goroutines, 100*lost, 100*historyMost)
		}
	}
}
