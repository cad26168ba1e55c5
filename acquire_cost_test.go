package holdfast_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// What nobody else wants costs two requests, and this many allocations at most, with
// that of memlock. Under the race detector it is one more.
func TestAcquireReleaseCost(t *testing.T) {
	for what, acquire := range acquires {
		c := newClient(t, memlock.New(), nil)
		pair := func() {
			l, err := acquire(c, t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]float64{"TryAcquire": 6, "Acquire": 7}[what]
		if n := testing.AllocsPerRun(1000, pair); n > want {
			t.Errorf("%s and Release allocate %.0f times, want %.0f at most", what, n, want)
		}
	}
}

// An Observer costs one allocation for a lease, and less than a microsecond for each of
// its events: the time is logged, as the difference of medians in the same rounds. It
// is 6 or 7 allocations without one, as before there was a queue for events: see
// TestAcquireReleaseCost.
func TestObserverCost(t *testing.T) {
	var told atomic.Int64
	clients := map[string]*holdfast.Client{
		"off": newClient(t, memlock.New(), nil),
		"on":  newClient(t, memlock.New(), &holdfast.Options{Observer: func(holdfast.Event) { told.Add(1) }}),
	}
	pair := func(c *holdfast.Client) {
		l, err := c.TryAcquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	allocs := map[string]float64{}
	took := map[string][]time.Duration{}
	for what, c := range clients {
		allocs[what] = testing.AllocsPerRun(1000, func() { pair(c) })
	}
	if more := allocs["on"] - allocs["off"]; more > 1 {
		t.Errorf("%.0f allocations with an Observer, %.0f without, want one more at most", allocs["on"], allocs["off"])
	}
	for range 200 {
		for what, c := range clients {
			began := time.Now()
			for range 100 {
				pair(c)
			}
			took[what] = append(took[what], time.Since(began)/100)
		}
	}
	median := func(what string) time.Duration {
		slices.Sort(took[what])
		return took[what][len(took[what])/2]
	}
	t.Logf("acquire and release: %s without an Observer, %s with one; %.0f and %.0f allocations", median("off"), median("on"), allocs["off"], allocs["on"])
	if on, off := median("on"), median("off"); on > 5*off {
		t.Errorf("acquire and release take %s with an Observer, %s without", on, off)
	}
}

type acquireFunc = func(*holdfast.Client, context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error)

// acquires are the two ways of taking a lock.
var acquires = map[string]acquireFunc{
	"TryAcquire": (*holdfast.Client).TryAcquire,
	"Acquire":    (*holdfast.Client).Acquire,
}
