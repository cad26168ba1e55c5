package sim

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds    = flag.Int("seeds", 10, "number of runs of TestSim")
	firstOne = flag.Uint64("first", 1, "the first seed of TestSim")
	oneSeed  = flag.Uint64("seed", 0, "the only seed of TestSim, which is run with -repeat")
	repeats  = flag.Int("repeat", 1, "how often to run -seed, until something is found")
)

// patience is how long one run may take in real time. A run that takes longer hangs.
const patience = 2 * time.Minute

// TestSim makes runs with many seeds and checks each. The package documentation lists what must
// hold.
func TestSim(t *testing.T) {
	first, count := *firstOne, uint64(*seeds)
	if *oneSeed != 0 {
		first, count = *oneSeed, uint64(*repeats)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // runs make much garbage and keep little
	var total totals
	var next atomic.Uint64
	scripts := NewScripts()
	t.Run("runs", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= count && total.found.Load() == 0; n = next.Add(1) {
					seed := first + n - 1
					if *oneSeed != 0 {
						seed = first
					}
					total.add(t, runOne(t, scripts, seed))
				}
			})
		}
	})
	t.Log(total.String())
}

// runOne makes one run in its own bubble.
func runOne(t *testing.T, scripts *Scripts, seed uint64) (r Result) {
	if testing.Verbose() {
		fmt.Println("seed", seed) // a panic in the library does not contain it
	}
	watchdog := time.AfterFunc(patience, func() { panic(fmt.Sprintf("sim: seed %d stands still", seed)) })
	defer watchdog.Stop()
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("sim: seed %d: %v", seed, p))
		}
	}()
	synctest.Test(t, func(*testing.T) { r = Run(scripts, seed) })
	return r
}

// totals are the figures of all runs.
type totals struct {
	found atomic.Int64 // runs with a violation

	mu             sync.Mutex // guards the rest
	runs           int
	virtual        time.Duration
	counts, faults map[string]int
}

func (s *totals) add(t *testing.T, r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, s.faults = map[string]int{}, map[string]int{}
	}
	s.runs++
	s.virtual += r.Virtual
	for what, n := range r.Counts {
		s.counts[what] += n
	}
	for what, n := range r.Faults {
		s.faults[what] += n
	}
	if len(r.Violations) > 0 {
		s.found.Add(1)
		t.Errorf("seed %d (replay: go test ./sim -run Sim -seed %d -repeat 50):\n%s\n%s",
			r.Seed, r.Seed, strings.Join(r.Violations, "\n"), r.Trace)
	}
}

func (s *totals) String() string {
	figures := func(m map[string]int) string {
		var words []string
		for _, what := range slices.Sorted(maps.Keys(m)) {
			words = append(words, fmt.Sprintf("%s %d", what, m[what]))
		}
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%d runs, %.1f virtual hours; %s; faults: %s", s.runs, s.virtual.Hours(), figures(s.counts), figures(s.faults))
}
