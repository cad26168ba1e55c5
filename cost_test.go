package holdfast_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// BenchmarkPair measures an acquire and a release on memlock, and for comparison the two requests
// on the engine without a client.
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

// TestAcquireReleaseCost checks that a pair without contention makes at most this many allocations,
// including memlock's. Under the race detector it makes one more.
func TestAcquireReleaseCost(t *testing.T) {
	for what, acquire := range acquires {
		c := newClient(t, mem.New(nil), nil)
		pair := func() {
			l, err := acquire(c, t.Context(), "a", nil)
			must(t, err)
			must(t, l.Release(t.Context()))
		}
		want := map[string]float64{"TryAcquire": 6, "Acquire": 7}[what]
		n := testing.AllocsPerRun(1000, pair)
		expect(t, n <= want, "%s and Release allocate %.0f times, want %.0f at most", what, n, want)
	}
}

// TestAcquireCosts checks that a short wait for short work costs two requests, like no wait: no
// refresh, no confirmation.
func TestAcquireCosts(t *testing.T) {
	check := func(ttl, wait, work time.Duration) {
		runWithClient(t, fmt.Sprint("TTL ", ttl, " wait ", wait), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			if wait > 0 {
				time.AfterFunc(wait, foreign(t, engine, "a", time.Hour))
			}
			start := time.Now()
			l, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: ttl})
			must(t, err)
			took := time.Since(start)
			expect(t, took == wait, "acquired after %s, want at the release, after %s", took, wait)
			time.Sleep(work)
			l.Release(t.Context())
			got := fmt.Sprint(engine.calls)
			expect(t, got == "map[acquire:1 release:1]", "requests = %s, want 1 acquire and 1 release", got)
		})
	}
	for _, wait := range []time.Duration{0, 1, 700 * time.Millisecond, 1490 * time.Millisecond} {
		for _, ttl := range []time.Duration{5 * time.Second, 30 * time.Second, time.Hour} {
			check(ttl, wait, 99*time.Millisecond)
		}
		check(500*time.Millisecond, wait/10, 90*time.Millisecond)
	}
}

// TestEveryCost checks that a scheduled time costs four requests, with any number of replicas. The
// leader's renewals and the waiters' refreshes come on top, as without a schedule.
func TestEveryCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, store, asked := &diary{t: t}, mem.New(nil), map[string]int{}
		var mu sync.Mutex // guards asked
		count := func(_ context.Context, r hook.Request, send func() error) error {
			mu.Lock()
			asked[r.Method]++
			mu.Unlock()
			return send()
		}
		var stops []func() error
		for range 5 {
			engine := &hook.Engine{Forward: driver.Forward{Engine: store}, Each: count}
			stops = append(stops, d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil)))
		}
		time.Sleep(30 * time.Second)
		mu.Lock()
		clear(asked)
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		for _, stop := range stops {
			defer func() { _ = stop() }()
		}
		mu.Lock()
		defer mu.Unlock()
		t.Logf("requests of 5 replicas for 10 scheduled times: %v", asked)
		delete(asked, "Extend")
		delete(asked, "Refresh")
		want := map[string]int{"Acquire": 10, "Recall": 10, "Complete": 20}
		expect(t, maps.Equal(asked, want), "10 scheduled times took %v, want %v", asked, want)
	})
}

// TestOnceWaitingCost checks what waiting for a result costs with a queue: an acquire for the
// place, a share of a refresh when the place is gone, a cancel, and the acquire that finds the
// result.
func TestOnceWaitingCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			time.Sleep(time.Second)
			return nil, nil
		})
		crowd(t, engine, 11, 0, &holdfast.OnceOptions{Await: holdfast.Forever}, j)
		synctest.Wait()
		got := fmt.Sprint(engine.calls)
		expect(t, got == "map[acquire:21 complete:1 refresh:4 release:10]", "10 waiters cost %s", got)
		expect(t, engine.watching == 0, "%d watches were not stopped", engine.watching)
	})
}

// TestTurnsMemoryIsBounded checks that a client remembers a bounded number of names. INVARIANT I11.
func TestTurnsMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		for i := range 3000 {
			l, err := c.Acquire(t.Context(), fmt.Sprint("name-", i), nil)
			must(t, err)
			l.Release(t.Context())
		}
		n := holdfast.RecentTurns(c)
		expect(t, n != 0 && n <= 256, "%d names are remembered, want 1 to 256", n)
	})
}

// TestTurnsAllocateNothing checks that fairness costs no allocation: Acquire allocates as often as
// TryAcquire.
func TestTurnsAllocateNothing(t *testing.T) {
	c := newClient(t, plain{newFaulty()}, nil)
	measure := func(acquire func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error)) float64 {
		return testing.AllocsPerRun(1000, func() {
			l, err := acquire(context.Background(), "a", nil)
			must(t, err)
			l.Release(context.Background())
		})
	}
	tries, waits := measure(c.TryAcquire), measure(c.Acquire)
	expect(t, waits <= tries, "%.1f allocations with waiting, %.1f without", waits, tries)
}

// TestKeepAliveBatches checks that leases need no goroutines, and that renewals are sent in
// batches.
func TestKeepAliveBatches(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		before := runtime.NumGoroutine()
		var leases []*holdfast.Lease
		for i := range 300 {
			leases = append(leases, mustAcquire(t, c, fmt.Sprint("name ", i), nil))
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("%d goroutines for 300 leases, want none", n)
		}
		time.Sleep(5 * time.Minute)
		for _, l := range leases {
			need(t, l.Valid(), "%s: %v", l.Name(), context.Cause(l.Context()))
			l.Release(t.Context())
		}
		// 3 or 4 batches of at most 128 every 5 s.
		if n := engine.count("extend"); n > 4*62 {
			t.Errorf("%d requests in 5 minutes for 300 leases, want about 240", n)
		}
		for _, size := range engine.sizes {
			need(t, size <= driver.MaxBatch, "a batch of %d, the limit is %d", size, driver.MaxBatch)
		}
	})
}

// TestRefreshesGoOutInBatches checks that the places of one client are refreshed in batches,
// without further goroutines.
func TestRefreshesGoOutInBatches(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := runtime.NumGoroutine()
		var waiting []<-chan outcome
		for i := range 1000 {
			name := fmt.Sprint("name ", i)
			foreign(t, engine, name, time.Hour)
			waiting = append(waiting, enqueue(ctx, c, name, nil))
		}
		if n := runtime.NumGoroutine() - before; n > 1010 {
			t.Errorf("%d goroutines for 1,000 waiters, want no more than the callers'", n)
		}
		time.Sleep(20 * time.Second)
		// 8 batches of at most 128, every 5/3 s less a little.
		if n := engine.count("refresh"); n < 8*12 || n > 10*14 {
			t.Errorf("%d refreshes in 20 s for 1,000 waiters, want about %d", n, 8*12)
		}
		if n := engine.count("acquire"); n != 1000 {
			t.Errorf("%d attempts, want one each", n)
		}
		for i := range waiting {
			if lock, _ := engine.Engine.Inspect(ctx, fmt.Sprint("name ", i)); len(lock.Queue) != 1 || lock.Queue[0].Since < 20*time.Second {
				t.Fatalf("name %d: queue %+v, want the first place", i, lock.Queue)
			}
		}
		cancel()
		for i, w := range waiting {
			wantErr(t, (<-w).err, context.Canceled)
			time.Sleep(time.Millisecond)
			if lock, _ := engine.Engine.Inspect(t.Context(), fmt.Sprint("name ", i)); len(lock.Queue) != 0 {
				t.Fatalf("name %d: the place stayed behind", i)
			}
		}
	})
}

// leaseBytes is how much memory a held lease may take in the client, including its lease ID and its
// entries in the timetable and among the client's leases by name.
const leaseBytes = 640

// TestLeaseMemory checks that leases add no goroutine, no timer, and little memory. An acquire of a
// new name allocates the lease, its ID, the context of the request, and three objects of the
// engine.
func TestLeaseMemory(t *testing.T) {
	const child = "HOLDFAST_TEST_LEASE_MEMORY"
	if os.Getenv(child) == "" { // a process of its own, because the memory of earlier tests becomes free at any time
		cmd := exec.Command(os.Args[0], "-test.run=^TestLeaseMemory$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=yes")
		output, err := cmd.CombinedOutput()
		t.Logf("%s", output)
		must(t, err)
		return
	}
	const n = 10_000
	var names []string
	var ids []lockinfo.LeaseID
	for i := range n {
		names, ids = append(names, fmt.Sprint("orders/", i)), append(ids, lockinfo.NewLeaseID())
	}
	alone := mem.New(nil)
	engine := grown(func() {
		for i, name := range names {
			_, err := alone.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: ids[i], TTL: time.Hour})
			must(t, err)
		}
	})
	runtime.KeepAlive(alone)
	for _, watched := range []bool{false, true} {
		c := newClient(t, mem.New(nil), &holdfast.Options{TTL: time.Hour})
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
					l.Context().Done() // like a caller that waits for it
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
		expect(t, float64(allocated)/n <= 7.5, "an acquire makes %.1f allocations, want 6, or 7 under the race detector", float64(allocated)/n)
		runtime.KeepAlive(leases)
	}
}

// grown returns by how many bytes the heap grows during do.
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

// TestTurnsAlone checks that a client alone neither pauses nor sends more requests for ten seconds.
// Then it pauses for a fortieth of the time.
func TestTurnsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		for i := range 100 {
			waited := turn(t, c, 99*time.Millisecond, nil)
			need(t, waited <= 0, "turn %d began with a pause of %s", i, waited)
		}
		got := fmt.Sprint(engine.calls)
		expect(t, got == "map[acquire:100 release:100]", "requests = %s", got)
		var waited time.Duration
		for range 1000 {
			waited += turn(t, c, 100*time.Millisecond, nil)
		}
		expect(t, waited != 0 && waited <= 2500*time.Millisecond, "pauses of %s in 100 s; want some, and 2.5 s at most", waited)
		for range 10 { // a client that is idle for a while need not pause
			time.Sleep(300 * time.Millisecond)
			waited := turn(t, c, 5*time.Second, nil)
			expect(t, waited <= 0, "a pause of %s, 300 ms after the release", waited)
		}
	})
}
