package systest

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/promlock"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// metricsAdd is how much time promlock may add to a pair of acquire and release.
const metricsAdd = 2 * time.Microsecond

// TestMetricsCost measures how much longer a pair of acquire and release takes in memory with
// promlock, in the median of interleaved rounds. Only a soak judges it, because other work disturbs
// it.
func TestMetricsCost(t *testing.T) {
	metrics := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
	off, on := timedPairs(t, nil), timedPairs(t, metrics.Observe)
	var more []time.Duration
	for range soak.Count(20, 400) {
		without := off()
		more = append(more, on()-without)
	}
	slices.Sort(more)
	median := more[len(more)/2]
	t.Logf("promlock adds %s to a pair of acquire and release, in the median of %d rounds", median, len(more))
	if soak.Long() && !underRace && median > metricsAdd {
		t.Errorf("promlock adds %s to a pair of acquire and release, want %s at most", median, metricsAdd)
	}
}

// timedPairs returns a function that measures 500 pairs and returns the mean time of one.
func timedPairs(t *testing.T, observer holdfast.Observer) func() time.Duration {
	t.Helper()
	client, err := holdfast.New(mem.New(nil), &holdfast.Options{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	const pairs = 500
	return func() time.Duration {
		began := time.Now()
		for range pairs {
			lease, err := client.TryAcquire(t.Context(), "orders/42", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(began) / pairs
	}
}
