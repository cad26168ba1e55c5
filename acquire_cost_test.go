package holdfast_test

import (
	"testing"

	"github.com/holdfast-locks/holdfast/memlock"
)

// acquireReleaseAllocates is how often the uncontended path may allocate: 16 times,
// with the two allocations of memlock. Under the race detector pools forget what
// they were given, which makes it 17 or 18.
const acquireReleaseAllocates = 18

// What nobody else wants costs two requests, and no allocation more than it did.
func TestAcquireReleaseCost(t *testing.T) {
	c := newClient(t, memlock.New(), nil)
	pair := func() {
		l, err := c.TryAcquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, pair); n > acquireReleaseAllocates {
		t.Errorf("acquire and release allocate %.0f times, want %d at most", n, acquireReleaseAllocates)
	}
}
