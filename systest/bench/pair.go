package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// A placement is the choice of cores for server and client.
type placement int

const (
	anyCore placement = iota // wherever the system puts them
	splitCores
	sharedCore
)

// apply moves the server and this process to their cores, until undo.
func (p placement) apply(server int) (undo func(), err error) {
	if p == anyCore {
		return func() {}, nil
	}
	own := 0
	if p == splitCores {
		own = 1
	}
	undoServer, err := pin(server, 0)
	if err != nil {
		return nil, err
	}
	undoOwn, err := pin(os.Getpid(), own)
	if err != nil {
		undoServer()
		return nil, err
	}
	before := runtime.GOMAXPROCS(1) // as if the program had one core from the start
	return func() {
		runtime.GOMAXPROCS(before)
		undoOwn()
		undoServer()
	}, nil
}

// split returns the workload with server and client on cores of their own. Each reply must then
// wake the other core, which takes most of the time of a hand-off.
func (w workload) split() workload {
	run := w.run
	w.name += "-split"
	w.title += ", server and client on cores of their own"
	w.best = true
	w.run = func(ctx context.Context, t *trial) (sample, error) {
		undo, err := splitCores.apply(t.store.pid())
		if err != nil {
			return nil, err
		}
		defer undo()
		return run(ctx, t)
	}
	return w
}

// latency measures one goroutine that takes a free lock and releases it.
func latency(name, title string, where placement) workload {
	return workload{
		name: name, title: title, base: floor, needs: peer.Takes,
		metrics: []report.Metric{
			{Name: "p50", Title: "a pair, median", Unit: "µs", Better: report.Less},
			{Name: "p99", Title: "99 %", Unit: "µs", Better: report.Less},
			perServer, perScript, perClient, perAllocs, perBytes, perOuter, perInner,
		},
		run: byOne(func(ctx context.Context, t *trial, client peer.Client) (sample, error) {
			undo, err := where.apply(t.store.pid())
			if err != nil {
				return nil, err
			}
			defer undo()
			s, err := oneByOne(ctx, t, client)
			if err != nil {
				return nil, err
			}
			return s, t.countAll(s, func() (int64, error) {
				for range counted {
					if err := pair(ctx, client, t.name); err != nil {
						return 0, err
					}
				}
				return counted, nil
			})
		}),
	}
}

// oneByOne measures pairs of one goroutine.
func oneByOne(ctx context.Context, t *trial, client peer.Client) (sample, error) {
	if err := pairsFor(ctx, client, t.name, t.warmUp(), nil); err != nil {
		return nil, err
	}
	took := make([]float64, 0, 1<<18) // large enough not to grow while allocations are counted
	s, err := t.cost(func() (int64, error) {
		err := pairsFor(ctx, client, t.name, t.length, func(d time.Duration) {
			took = append(took, float64(d)/float64(time.Microsecond))
		})
		return int64(len(took)), err
	})
	if err != nil {
		return nil, err
	}
	s["p50"], s["p99"] = report.Median(took), report.Percentile(took, 99)
	return s, nil
}

// pairsFor makes pairs for some time, and calls tell with the time of each.
func pairsFor(ctx context.Context, client peer.Client, name string, length time.Duration, tell func(time.Duration)) error {
	now := time.Now()
	for end := now.Add(length); now.Before(end); {
		if err := pair(ctx, client, name); err != nil {
			return err
		}
		after := time.Now()
		if tell != nil {
			tell(after.Sub(now))
		}
		now = after
	}
	return nil
}

// pair takes a lock and releases it.
func pair(ctx context.Context, client peer.Client, name string) error {
	held, err := client.Try(ctx, name)
	if err != nil {
		return fmt.Errorf("take: %w", err)
	}
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// counted is the number of pairs whose commands are counted.
const counted = 200

// throughput measures goroutines, each with a name of its own.
func throughput(goroutines int) workload {
	return workload{
		name:  fmt.Sprintf("throughput-%d", goroutines),
		title: fmt.Sprintf("Goroutines with names of their own: %d", goroutines),
		base:  floor,
		needs: peer.Takes,
		metrics: []report.Metric{
			{Name: "rate", Title: "pairs a second", Better: report.More},
			perServer, perScript, perClient, perAllocs, perBytes, perCall, perOuter, perInner,
		},
		run: byOne(func(ctx context.Context, t *trial, client peer.Client) (sample, error) {
			pairs := func(length time.Duration) (int64, error) { return pairsOfMany(ctx, t, client, goroutines, length) }
			if _, err := pairs(t.warmUp()); err != nil {
				return nil, err
			}
			s, err := t.cost(func() (int64, error) { return pairs(t.length) })
			if err != nil {
				return nil, err
			}
			return s, t.countAll(s, func() (int64, error) { return pairs(t.warmUp()) })
		}),
	}
}

// pairsOfMany returns how many pairs the goroutines made.
func pairsOfMany(ctx context.Context, t *trial, client peer.Client, goroutines int, length time.Duration) (int64, error) {
	var pairs atomic.Int64
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			own := int64(0)
			errs[i] = pairsFor(ctx, client, fmt.Sprintf("%s-%d", t.name, i), length, func(time.Duration) { own++ })
			pairs.Add(own)
		})
	}
	all.Wait()
	return pairs.Load(), errors.Join(errs...)
}
