package promlock_test

import (
	"log/slog"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/promlock"
)

// pair returns how to take a lock and give it back, on memory.
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

// pairAllocates is how often the pair of events allocates on its way to promlock and in
// it: for labels, and for the queue of the Observer.
const pairAllocates = 9

// TestPairCost: what promlock adds to a pair of acquire and release does not creep up.
// What that is in time, TestMetricsCost of systest measures in the soak.
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
