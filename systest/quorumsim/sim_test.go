package quorumsim

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
)

var (
	seeds    = flag.Int("seeds", 600, "number of runs of TestSkewedClients")
	firstOne = flag.Uint64("first", 1, "the first seed of TestSkewedClients")
)

// TestSkewedClients makes runs with many seeds. The package documentation lists what must hold.
func TestSkewedClients(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // runs make much garbage and keep little
	var next, found atomic.Int64
	var mu sync.Mutex // guards the figures
	granted, failed, faults := 0, 0, map[string]int{}
	t.Run("runs", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= int64(*seeds) && found.Load() == 0; n = next.Add(1) {
					var r Result
					synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), *firstOne+uint64(n)-1) })
					mu.Lock()
					granted, failed = granted+r.Granted, failed+r.Failed
					for what, n := range r.Faults {
						faults[what] += n
					}
					mu.Unlock()
					if len(r.Violations) > 0 {
						found.Add(1)
						t.Errorf("seed %d (replay: go test ./quorumsim -first %d -seeds 1 -count 50):\n%s", r.Seed, r.Seed, strings.Join(r.Violations, "\n"))
					}
				}
			})
		}
	})
	var kinds []string
	for _, what := range slices.Sorted(maps.Keys(faults)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", what, faults[what]))
	}
	t.Logf("%d runs: %d leases, %d attempts without; requests by their fate: %s", *seeds, granted, failed, strings.Join(kinds, ", "))
	if granted < 5**seeds && found.Load() == 0 {
		t.Errorf("%d leases in %d runs: that tested nothing", granted, *seeds)
	}
}
