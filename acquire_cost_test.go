package holdfast_test

import (
	"context"
	"testing"

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

// acquires are the two ways of taking a lock.
var acquires = map[string]func(*holdfast.Client, context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error){
	"TryAcquire": (*holdfast.Client).TryAcquire,
	"Acquire":    (*holdfast.Client).Acquire,
}
