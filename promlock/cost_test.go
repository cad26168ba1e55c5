package promlock_test

import (
	"log/slog"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/promlock"
)

// pair returns a function that acquires and releases a lock in memory.
func pair(tb testing.TB, observer holdfast.Observer) func() {
	client, err := holdfast.New(mem.New(nil), &holdfast.Options{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	return func() {
		lease, err := client.TryAcquire(tb.Context(), "orders/42", nil)
		if err != nil {
			tb.Fatal(err)
		}
		if err := lease.Release(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}

// pairAllocates is how many allocations the events of a pair may make in promlock and on the way
// there: for labels, and for the queue of the Observer.
const pairAllocates = 9

// TestPairCost checks the allocations that promlock adds to an acquire and release. TestMetricsCost
// of systest measures the time.
func TestPairCost(t *testing.T) {
	off := testing.AllocsPerRun(5000, pair(t, nil))
	on := testing.AllocsPerRun(5000, pair(t, promlock.New(&promlock.Options{NameLabel: promlock.FoldNames}).Observe))
	t.Logf("a pair makes %.1f allocations without promlock, and %.1f with it", off, on)
	if on > off+pairAllocates {
		t.Errorf("a pair makes %.1f allocations with promlock and %.1f without, want %d more at most", on, off, pairAllocates)
	}
}

func BenchmarkPair(b *testing.B) {
	for _, c := range []struct {
		name     string
		observer holdfast.Observer
	}{
		{"off", nil},
		{"nobody", func(holdfast.Event) {}},
		{"plain", promlock.New(nil).Observe},
		{"names", promlock.New(&promlock.Options{NameLabel: promlock.FoldNames}).Observe},
	} {
		b.Run(c.name, func(b *testing.B) {
			run := pair(b, c.observer)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
