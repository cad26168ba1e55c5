package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// BenchmarkPair measures the library itself, and how much of that is memlock: the
// engine's own share is two requests without a client.
func BenchmarkPair(b *testing.B) {
	for what, acquire := range acquires {
		b.Run(what, func(b *testing.B) { benchmarkPair(b, acquire, nil) })
		b.Run(what+", observed", func(b *testing.B) { benchmarkPair(b, acquire, func(holdfast.Event) {}) })
	}
	b.Run("engine", func(b *testing.B) {
		e, id := mem.New(nil), lockinfo.NewLeaseID()
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Acquire(ctx, driver.AcquireRequest{Name: "a", LeaseID: id, TTL: time.Minute}); err != nil {
				b.Fatal(err)
			}
			if err := e.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: id}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkPair(b *testing.B, acquire acquireFunc, observer holdfast.Observer) {
	c := newClient(b, mem.New(nil), &holdfast.Options{Observer: observer})
	b.ReportAllocs()
	for b.Loop() {
		l, err := acquire(c, b.Context(), "a", nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	c := newClient(b, mem.New(nil), &holdfast.Options{TTL: time.Hour})
	l := mustAcquire(b, c, "a", nil)
	for b.Loop() {
		if !l.Valid() {
			b.Fatal("not valid")
		}
	}
}
