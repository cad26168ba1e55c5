package holdfast_test

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// BenchmarkAcquireRelease measures the library itself: memlock costs next to
// nothing.
func BenchmarkAcquireRelease(b *testing.B) {
	c := newClient(b, memlock.New(), nil)
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.TryAcquire(b.Context(), "a", nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	c := newClient(b, memlock.New(), &holdfast.Options{TTL: time.Hour})
	l := mustAcquire(b, c, "a", nil)
	for b.Loop() {
		if !l.Valid() {
			b.Fatal("not valid")
		}
	}
}
