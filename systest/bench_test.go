package systest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock"
)

// parallelism is the number of goroutines per processor. Many callers share one connection, so that
// their requests are sent in batches.
const parallelism = 128

// BenchmarkAcquireRelease acquires and releases uncontended locks with the whole library.
func BenchmarkAcquireRelease(b *testing.B) {
	engine, err := redislock.Open(b.Context(), testsvc.Redis(b).URL)
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	client, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	each(b, func(name string) error {
		lease, err := client.TryAcquire(b.Context(), name, nil)
		if err != nil {
			return err
		}
		return lease.Release(b.Context())
	})
}

// BenchmarkSetDel is the lower bound for a lock: SET NX PX and DEL on the same kind of connection,
// without token, owner or renewal.
func BenchmarkSetDel(b *testing.B) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{testsvc.Redis(b).Addr}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	each(b, func(name string) error {
		set := client.B().Set().Key(name).Value("x").Nx().PxMilliseconds(30000).Build()
		if err := client.Do(b.Context(), set).Error(); err != nil {
			return err
		}
		return client.Do(b.Context(), client.B().Del().Key(name).Build()).Error()
	})
}

// each calls cycle from many goroutines, each with a name of its own.
func each(b *testing.B, cycle func(name string) error) {
	var goroutines atomic.Int64
	b.SetParallelism(parallelism)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		name := fmt.Sprint("bench ", goroutines.Add(1))
		for pb.Next() {
			if err := cycle(name); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
