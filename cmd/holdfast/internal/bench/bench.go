// Package bench measures what locks in a store cost, as this machine sees it: latency,
// throughput, and hand-overs.
//
// It uses names of its own, which begin with holdfast-bench- and random digits, and releases all
// its leases, even if its context ends early. If the process is killed, its leases end with their
// TTL. As for every name, the store remembers the last token of each of them, 256 at most, for a
// day.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Prefix begins the names of all locks of this package.
const Prefix = "holdfast-bench-"

const (
	ttl   = 3 * time.Second  // of all leases
	spare = 10 * time.Second // how much longer than requested a run may take
)

// workers returns the numbers of workers that are measured.
func workers() []int { return []int{1, 16, 256} }

// A Result is what was measured.
type Result struct {
	Load     []Load  `json:"throughput"`
	HandOver Latency `json:"hand_over"` // from the call of Release until a waiter on another connection has the lock
}

// A Load is the throughput of several workers at the same time, each with a lock of its own.
type Load struct {
	Workers int     `json:"workers"`
	PerS    int     `json:"pairs_per_s"` // acquire and release
	Failed  int     `json:"failed"`      // pairs that failed, because the store did not answer in time for example
	Acquire Latency `json:"acquire"`
	Release Latency `json:"release"`
	Pair    Latency `json:"acquire_release"`
}

// A Latency has percentiles of measured times, in microseconds: half of them were at most P50, 95
// in a hundred at most P95, and 99 in a hundred at most P99.
type Latency struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50_us"`
	P95   int64 `json:"p95_us"`
	P99   int64 `json:"p99_us"`
}

// latencyOf returns the percentiles of times, which it sorts.
func latencyOf(times []time.Duration) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	slices.Sort(times)
	at := func(percent int) int64 { return times[(len(times)*percent+99)/100-1].Microseconds() }
	return Latency{Count: len(times), P50: at(50), P95: at(95), P99: at(99)}
}

// A bench is one run.
type bench struct {
	prefix string
	part   time.Duration // how long to measure each number of workers, and the hand-overs
	client *holdfast.Client
	waiter *holdfast.Client // the other client of hand-overs, on another connection
}

// Run measures for about the given time, and for some seconds more at most. second is another
// connection to the same store, for the waiting client; it may be engine itself. When ctx ends,
// Run returns its cause with the results so far, and holds no lease.
func Run(ctx context.Context, engine, second driver.Engine, whole time.Duration) (r Result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, whole+spare, fmt.Errorf("%w: it is too slow to be measured in %s", driver.ErrUnavailable, whole+spare))
	defer cancel()
	b := &bench{prefix: Prefix + string(lockinfo.NewLeaseID())[:12] + "/", part: whole / time.Duration(len(workers())+1)}
	// The clients log nothing: errors are counted, or end the measurement.
	options := &holdfast.Options{Logger: slog.New(slog.DiscardHandler), SharedEngine: true}
	if b.client, err = holdfast.New(engine, options); err != nil {
		return r, err
	}
	defer tidy(b.client)
	if b.waiter, err = holdfast.New(second, options); err != nil {
		return r, err
	}
	defer tidy(b.waiter)
	for _, n := range workers() {
		load, err := b.load(ctx, n)
		if load.Pair.Count > 0 {
			r.Load = append(r.Load, load)
		}
		if err != nil {
			return r, cmp.Or(context.Cause(ctx), err)
		}
	}
	if r.HandOver, err = b.handOver(ctx); err != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	return r, err
}

// tidy releases the leases of a client, and waits until that is done.
func tidy(c *holdfast.Client) { _ = c.Close() } // a lease that cannot be released ends with its TTL

// name returns one of the names of this run.
func (b *bench) name(i int) string { return fmt.Sprintf("%s%d", b.prefix, i) }

// during calls f again and again for one part of the time, and at least once.
func (b *bench) during(ctx context.Context, f func() error) error {
	for end := time.Now().Add(b.part); ; {
		if err := f(); err != nil {
			return err
		}
		if ctx.Err() != nil || !time.Now().Before(end) {
			return ctx.Err()
		}
	}
}

// load has n workers acquire and release locks, each its own. With an error it returns the
// results before it.
func (b *bench) load(ctx context.Context, n int) (Load, error) {
	all := make([]worker, n)
	start := time.Now()
	var wg sync.WaitGroup // one goroutine for each worker
	for i := range all {
		wg.Go(func() {
			all[i].err = b.during(ctx, func() error { return all[i].pair(ctx, b.client, b.name(i)) })
		})
	}
	wg.Wait()
	lasted := time.Since(start)
	var sum worker
	for _, w := range all {
		sum.err = cmp.Or(sum.err, w.err)
		sum.acquire, sum.release, sum.both = append(sum.acquire, w.acquire...), append(sum.release, w.release...), append(sum.both, w.both...)
		sum.failed, sum.last = sum.failed+w.failed, cmp.Or(sum.last, w.last)
	}
	if len(sum.both) == 0 {
		return Load{}, cmp.Or(sum.err, sum.last)
	}
	return Load{
		Workers: n, PerS: int(float64(len(sum.both)) / lasted.Seconds()), Failed: sum.failed,
		Acquire: latencyOf(sum.acquire), Release: latencyOf(sum.release), Pair: latencyOf(sum.both),
	}, sum.err
}

// A worker acquires and releases one lock again and again.
type worker struct {
	acquire, release, both []time.Duration
	failed                 int
	last                   error // the error of the last failed pair
	err                    error // why the worker has ended early
}

// pair acquires and releases a lock. A timeout of an overloaded store is a result too.
func (w *worker) pair(ctx context.Context, c *holdfast.Client, name string) error {
	start := time.Now()
	lease, err := c.Acquire(ctx, name, &holdfast.AcquireOptions{TTL: ttl})
	granted := time.Now()
	if err == nil {
		err = lease.Release(ctx)
	}
	switch {
	case err == nil:
		w.acquire, w.release = append(w.acquire, granted.Sub(start)), append(w.release, time.Since(granted))
		w.both = append(w.both, time.Since(start))
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrOutcomeUnknown), errors.Is(err, holdfast.ErrLost):
		w.failed++
		w.last = err
	default:
		return err
	}
	return nil
}

// handOver passes a lock between two clients: by turns, one waits for the lock that the other
// holds.
func (b *bench) handOver(ctx context.Context) (Latency, error) {
	var took []time.Duration
	holds, waits := b.client, b.waiter
	lease, err := holds.Acquire(ctx, b.name(0), &holdfast.AcquireOptions{TTL: ttl})
	if err != nil {
		return Latency{}, err
	}
	err = b.during(ctx, func() error {
		var next *holdfast.Lease
		var at time.Time // when it was granted
		waiting, granted := make(chan struct{}), make(chan error, 1)
		go func() { // ends with ctx; its result is awaited below
			var err error
			announce := sync.OnceFunc(func() { close(waiting) })
			next, err = waits.Acquire(ctx, b.name(0), &holdfast.AcquireOptions{TTL: ttl, OnWait: func(holdfast.WaitState) { announce() }})
			at = time.Now()
			granted <- err
		}()
		select {
		case <-waiting:
		case err := <-granted: // it did not wait, so something is wrong
			return cmp.Or(err, fmt.Errorf("%w: two had the lock %q", holdfast.ErrLost, b.name(0)))
		}
		start := time.Now()
		if err := lease.Release(ctx); err != nil {
			return err
		}
		if err := <-granted; err != nil {
			return err
		}
		took = append(took, at.Sub(start))
		lease, holds, waits = next, waits, holds
		return nil
	})
	if err != nil {
		return latencyOf(took), err
	}
	return latencyOf(took), lease.Release(ctx)
}
