package systest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestNestedLocks checks that workers that share a collection, each with an exclusive lock on an
// item, exclude a pruner with an exclusive lock on the collection.
func TestNestedLocks(t *testing.T) {
	const workers, items, rounds, prunes = 32, 8, 12, 10
	for _, url := range []string{"memory:", "sqlite:", "redis:"} {
		t.Run(url[:len(url)-1], func(t *testing.T) {
			var h check.Spans
			engine := openFor(t, url)
			client := newClient(t, engine, nil)
			var pruning, pruned, served atomic.Int64
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					for r := range rounds {
						item := fmt.Sprintf("collection/%d", (w+r)%items)
						err := client.Do(t.Context(), "collection", shared(), func(ctx context.Context, outer *holdfast.Lease) error {
							defer h.During(outer)()
							return client.Do(ctx, item, nil, func(_ context.Context, inner *holdfast.Lease) error {
								defer h.During(inner)()
								if pruning.Load() != 0 {
									t.Error("a worker works while the pruner has the collection")
								}
								served.Add(1)
								return nil
							})
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Go(func() {
				for range prunes {
					err := client.Do(t.Context(), "collection", nil, func(_ context.Context, l *holdfast.Lease) error {
						defer h.During(l)()
						pruning.Add(1)
						defer pruning.Add(-1)
						pruned.Add(1)
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
			all.Wait()
			t.Logf("%d items served, %d prunes", served.Load(), pruned.Load())
			if served.Load() != workers*rounds || pruned.Load() != prunes {
				t.Errorf("want %d and %d", workers*rounds, prunes)
			}
			h.Check(t)
			checkNothingLeft(t, engine)
		})
	}
}

func shared() *holdfast.AcquireOptions {
	return &holdfast.AcquireOptions{Mode: holdfast.Shared}
}

// openFor opens an engine on a new store: "memory:", "sqlite:" or "redis:".
func openFor(t *testing.T, url string) driver.Engine {
	t.Helper()
	switch url {
	case "redis:":
		return newStore(t).engine
	case "sqlite:":
		url = "sqlite://" + t.TempDir() + "/locks.db"
	}
	engine, err := traffic.Open(t.Context(), traffic.Redislock, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// TestWriterIsNotStarved checks that readers that overlap without end do not keep a writer waiting.
// The writer is granted the lock after the readers before it, and the readers behind it are granted
// it together after the writer. INVARIANT I7.
func TestWriterIsNotStarved(t *testing.T) {
	const readers, writes = 8, 5
	for _, url := range []string{"memory:", "sqlite:", "redis:"} {
		t.Run(url[:len(url)-1], func(t *testing.T) {
			engine := openFor(t, url)
			client := newClient(t, engine, nil)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var reads atomic.Int64
			for range readers {
				all.Go(func() {
					for ctx.Err() == nil {
						_ = client.Do(ctx, "a", shared(), func(context.Context, *holdfast.Lease) error {
							reads.Add(1)
							time.Sleep(5 * time.Millisecond) // so that there is always a reader
							return nil
						})
					}
				})
			}
			for range writes {
				eventually(t, "there are readers", func() bool { return reads.Load() > readers })
				before := reads.Load()
				lease, err := client.Acquire(t.Context(), "a", nil)
				if err != nil {
					t.Fatal(err)
				}
				// These are the readers at the writer's arrival, and those granted the lock before
				// its request reached the store.
				if came := reads.Load() - before; came > 2*readers {
					t.Errorf("%d readers came in before the writer, want at most %d", came, 2*readers)
				}
				reads.Store(0)
				if err := lease.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			all.Wait()
		})
	}
}
