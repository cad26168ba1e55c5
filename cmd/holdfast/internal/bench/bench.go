// Package bench measures what locks in a store cost, as this machine sees it: round
// trips, latency, throughput, hand-overs, and leases that are kept alive.
//
// It uses names of its own, which begin with holdfast-bench- and random digits, and
// releases all its leases, even if its context ends early. What it leaves when it
// is killed ends with its TTL. The store remembers the last token of each of its
// names, 256 at most, for a day, as it does of every name.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Prefix begins the names of all locks of this package.
const Prefix = "holdfast-bench-"

const (
	most = 256             // workers, and leases that are kept alive: one name each
	ttl  = 3 * time.Second // of leases that are released at once

	// parts are what the whole time is divided into.
	parts       = 16
	roundTrips  = 1
	alone       = 3
	together    = 2 // for each number of workers
	handingOver = 2
	keeping     = 4

	// spare is how much longer than the whole time all may take.
	spare = 10 * time.Second
)

// workers are the numbers of those who work at the same time.
func workers() []int { return []int{1, 16, most} }

// A Result is what was measured.
type Result struct {
	RoundTrip  Latency      `json:"round_trip"` // of a request that reads one free name
	Acquire    Latency      `json:"acquire"`    // alone, of a free name
	Release    Latency      `json:"release"`
	Pair       Latency      `json:"acquire_release"`
	Throughput []Throughput `json:"throughput"`
	HandOver   Latency      `json:"hand_over"` // from the call of Release until a waiter, on a connection of its own, has the lock
	KeptAlive  KeptAlive    `json:"kept_alive"`
}

// A Throughput is what several get done at the same time, each with a name of its
// own.
type Throughput struct {
	Workers int     `json:"workers"`
	PerS    int     `json:"pairs_per_s"` // acquire and release
	Failed  int     `json:"failed"`      // that the store did not answer in time
	Pair    Latency `json:"acquire_release"`
}

// A KeptAlive is the result of holding leases for several times their TTL.
type KeptAlive struct {
	Leases  int     `json:"leases"`
	TTLMS   int64   `json:"ttl_ms"`
	HeldMS  int64   `json:"held_ms"`
	Lost    int     `json:"lost"`
	Failed  int     `json:"failed_renewals"`
	Renewal Latency `json:"renewal"` // of a request, which renews many leases
}

// A bench is one run.
type bench struct {
	prefix string
	unit   time.Duration // one part of the whole time
	engine driver.Engine
	client *holdfast.Client
	Result
}

// Run measures for about the given time, and some seconds more at most. second is
// another connection to the same store, for the waiting client; it may be engine itself.
// When ctx ends, Run returns its cause, and holds no lease.
func Run(ctx context.Context, engine, second driver.Engine, whole time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, whole+spare, fmt.Errorf("%w: it is too slow to be measured in %s", driver.ErrUnavailable, whole+spare))
	defer cancel()
	b := &bench{prefix: Prefix + string(lockinfo.NewLeaseID())[:12] + "/", unit: whole / parts, engine: engine}
	err := b.run(ctx, second)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return b.Result, err
}

func (b *bench) run(ctx context.Context, second driver.Engine) (err error) {
	if b.client, err = newClient(b.engine, nil); err != nil {
		return err
	}
	defer tidy(b.client)
	waiter, err := newClient(second, nil)
	if err != nil {
		return err
	}
	defer tidy(waiter)
	steps := []func(context.Context) error{b.measureRoundTrip, b.measureAlone}
	for _, n := range workers() {
		steps = append(steps, func(ctx context.Context) error { return b.measureTogether(ctx, n) })
	}
	steps = append(steps, func(ctx context.Context) error { return b.measureHandOver(ctx, waiter) }, b.measureKeeping)
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newClient returns a client that logs nothing: what goes wrong is counted, or ends the
// measurement.
func newClient(engine driver.Engine, observer holdfast.Observer) (*holdfast.Client, error) {
	return holdfast.New(engine, &holdfast.Options{Logger: slog.New(slog.DiscardHandler), Observer: observer, SharedEngine: true})
}

// tidy releases what a client holds, and waits until that is done.
func tidy(c *holdfast.Client) { _ = c.Close() } // a lease that cannot be released ends with its TTL

// name returns one of the names of this run.
func (b *bench) name(i int) string { return fmt.Sprintf("%s%d", b.prefix, i) }

// during calls f again and again for so many parts of the whole time, once at least.
func (b *bench) during(ctx context.Context, parts int, f func() error) error {
	for end := time.Now().Add(time.Duration(parts) * b.unit); ; {
		if err := f(); err != nil {
			return err
		}
		if ctx.Err() != nil || !time.Now().Before(end) {
			return ctx.Err()
		}
	}
}

func (b *bench) measureRoundTrip(ctx context.Context) error {
	var took samples
	err := b.during(ctx, roundTrips, func() error {
		start := time.Now()
		_, err := b.client.Inspect(ctx, b.name(0))
		took.add(start)
		return err
	})
	b.RoundTrip = took.latency()
	return err
}

func (b *bench) measureAlone(ctx context.Context) error {
	var acquire, release, pair samples
	err := b.during(ctx, alone, func() error {
		start := time.Now()
		lease, err := b.client.Acquire(ctx, b.name(0), &holdfast.AcquireOptions{TTL: ttl})
		if err != nil {
			return err
		}
		acquire.add(start)
		granted := time.Now()
		err = lease.Release(ctx)
		release.add(granted)
		pair.add(start)
		return err
	})
	b.Acquire, b.Release, b.Pair = acquire.latency(), release.latency(), pair.latency()
	return err
}

// measureTogether has n workers acquire and release locks, each its own.
func (b *bench) measureTogether(ctx context.Context, n int) error {
	all := make([]worker, n)
	start := time.Now()
	var wg sync.WaitGroup // one goroutine for each worker
	for i := range all {
		wg.Go(func() {
			all[i].err = b.during(ctx, together, func() error { return all[i].pair(ctx, b.client, b.name(i)) })
		})
	}
	wg.Wait()
	lasted := time.Since(start)
	t := Throughput{Workers: n}
	var took samples
	var last error
	for _, w := range all {
		if w.err != nil {
			return w.err
		}
		took, t.Failed, last = append(took, w.took...), t.Failed+w.failed, cmp.Or(last, w.last)
	}
	if len(took) == 0 {
		return last
	}
	t.PerS, t.Pair = int(float64(len(took))/lasted.Seconds()), took.latency()
	b.Throughput = append(b.Throughput, t)
	return nil
}

// A worker acquires and releases one lock again and again.
type worker struct {
	took   samples
	failed int
	last   error // why it failed
	err    error // why it has ended early
}

// pair acquires and releases a lock. A timeout of an overloaded store is a result too.
func (w *worker) pair(ctx context.Context, c *holdfast.Client, name string) error {
	start := time.Now()
	lease, err := c.Acquire(ctx, name, &holdfast.AcquireOptions{TTL: ttl})
	if err == nil {
		err = lease.Release(ctx)
	}
	switch {
	case err == nil:
		w.took.add(start)
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrOutcomeUnknown), errors.Is(err, holdfast.ErrLost):
		w.failed++
		w.last = err
	default:
		return err
	}
	return nil
}

// measureHandOver lets one client wait for the lock that the other has, by turns.
func (b *bench) measureHandOver(ctx context.Context, waiter *holdfast.Client) error {
	var took samples
	holds, waits := b.client, waiter
	lease, err := holds.Acquire(ctx, b.name(0), &holdfast.AcquireOptions{TTL: ttl})
	if err != nil {
		return err
	}
	err = b.during(ctx, handingOver, func() error {
		next := make(chan granted, 1)
		waiting := make(chan struct{})
		go func() { // ends with ctx; its answer is awaited below
			var once sync.Once
			l, err := waits.Acquire(ctx, b.name(0), &holdfast.AcquireOptions{TTL: ttl, OnWait: func(holdfast.WaitState) {
				once.Do(func() { close(waiting) })
			}})
			next <- granted{l, err, time.Now()}
		}()
		select {
		case <-waiting:
		case g := <-next: // it did not wait, so something is wrong
			if g.err == nil {
				g.err = fmt.Errorf("%w: two had the lock %q", holdfast.ErrLost, b.name(0))
			}
			return g.err
		}
		start := time.Now()
		if err := lease.Release(ctx); err != nil {
			return err
		}
		g := <-next
		if g.err != nil {
			return g.err
		}
		took = append(took, g.at.Sub(start))
		lease, holds, waits = g.lease, waits, holds
		return nil
	})
	b.HandOver = took.latency()
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

// A granted is what came of an Acquire, and when.
type granted struct {
	lease *holdfast.Lease
	err   error
	at    time.Time
}

// measureKeeping holds leases for three times their TTL.
func (b *bench) measureKeeping(ctx context.Context) error {
	var mu sync.Mutex // guards renewals and b.KeptAlive until the client is closed
	var renewals samples
	held := keeping * b.unit
	b.KeptAlive = KeptAlive{Leases: most, TTLMS: max(held/3, holdfast.MinTTL).Milliseconds(), HeldMS: held.Milliseconds()}
	client, err := newClient(b.engine, func(e holdfast.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind {
		case holdfast.Renewed:
			renewals = append(renewals, e.Took)
		case holdfast.RenewFailed:
			b.KeptAlive.Failed++
		case holdfast.Lost:
			b.KeptAlive.Lost++
		}
	})
	if err != nil {
		return err
	}
	errs := make([]error, 16)
	var wg sync.WaitGroup // some take the leases, each its share
	for n := range errs {
		wg.Go(func() {
			for i := n; i < most && errs[n] == nil; i += len(errs) {
				opts := &holdfast.AcquireOptions{TTL: time.Duration(b.KeptAlive.TTLMS) * time.Millisecond, WholeTTL: true}
				_, errs[n] = client.Acquire(ctx, b.name(i), opts)
			}
		})
	}
	wg.Wait()
	timer := time.NewTimer(held)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	tidy(client) // which also waits until the Observer got all events
	mu.Lock()
	defer mu.Unlock()
	if b.KeptAlive.Lost > 0 { // a lease that could not be released lasts for its TTL
		time.Sleep(time.Duration(b.KeptAlive.TTLMS) * time.Millisecond)
	}
	b.KeptAlive.Renewal = renewals.latency()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
