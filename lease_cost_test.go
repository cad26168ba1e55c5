package holdfast_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// leaseBytes is what a lease that is held may take in the client: with its lease ID,
// its entry in the timetable, and that among the leases of its client, by name.
const leaseBytes = 640

// TestLeaseMemory: leases add no goroutine, no timer, and little memory. What an
// acquire of a new name allocates are the lease, its ID, the context of the request,
// and three things of the engine: there is no timer among them.
func TestLeaseMemory(t *testing.T) {
	const n = 10_000
	var names []string
	var ids []driver.LeaseID
	for i := range n {
		names, ids = append(names, fmt.Sprint("orders/", i)), append(ids, driver.NewLeaseID())
	}
	alone := memlock.New()
	engine := grown(func() {
		for i, name := range names {
			if _, err := alone.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: ids[i], TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	})
	runtime.KeepAlive(alone)
	for _, watched := range []bool{false, true} {
		c := newClient(t, memlock.New(), &holdfast.Options{TTL: time.Hour})
		leases := make([]*holdfast.Lease, n)
		goroutines := runtime.NumGoroutine()
		var allocated uint64
		all := grown(func() {
			allocated = mallocs()
			for i, name := range names {
				leases[i] = mustAcquire(t, c, name, nil)
			}
			allocated = mallocs() - allocated
			for _, l := range leases {
				if watched {
					l.Context().Done() // as whoever waits for it does
				}
			}
		})
		if n := runtime.NumGoroutine() - goroutines; n > 0 {
			t.Errorf("watched %t: %d goroutines more", watched, n)
		}
		each := (all - engine) / n
		t.Logf("watched %t: %d bytes a lease in the client, %d in the engine, %.1f allocations an acquire", watched, each, engine/n, float64(allocated)/n)
		if !watched && each > leaseBytes {
			t.Errorf("a lease takes %d bytes in the client, want %d at most", each, leaseBytes)
		}
		if float64(allocated)/n > 7.5 {
			t.Errorf("an acquire makes %.1f allocations, want 6, or 7 under the race detector", float64(allocated)/n)
		}
		runtime.KeepAlive(leases)
	}
}

// grown returns by how many bytes the heap has grown in do.
func grown(do func()) uint64 {
	before := heap()
	do()
	return heap() - before
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
