package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// strict is two clients that hand a name to and fro: each releases it when the
// other has been waiting for 2 to 4 ms.
func strict() workload {
	return workload{
		name: "strict", title: "Two clients hand a name to and fro", base: relay, needs: peer.Waits,
		note: "From before the release until the other one has the lock.",
		metrics: []report.Metric{
			{Name: "p50", Title: "hand-off, median", Unit: "ms", Better: report.Less},
			{Name: "p99", Title: "99 %", Unit: "ms", Better: report.Less},
		},
		run: func(ctx context.Context, t *trial) (sample, error) {
			holder, err := t.open(ctx)
			if err != nil {
				return nil, err
			}
			waiter, err := t.open(ctx)
			if err == nil {
				err = t.prepare(ctx, holder, t.name)
			}
			if err != nil {
				return nil, err
			}
			held, err := holder.Wait(ctx, t.name)
			if err != nil {
				return nil, err
			}
			var took []float64
			begin := time.Now().Add(t.warmUp())
			for end := begin.Add(t.length); time.Now().Before(end); {
				var d time.Duration
				if held, d, err = passOn(ctx, held, waiter, t.name); err != nil {
					return nil, err
				}
				if time.Now().After(begin) {
					took = append(took, float64(d)/float64(time.Millisecond))
				}
				holder, waiter = waiter, holder
			}
			return sample{"p50": report.Median(took), "p99": report.Percentile(took, 99)}, held.Release(ctx)
		},
	}
}

// passOn hands a lock on to a client that waits for it, and returns how long
// that took.
func passOn(ctx context.Context, held peer.Held, waiter peer.Client, name string) (peer.Held, time.Duration, error) {
	type grant struct {
		held peer.Held
		at   time.Time
		err  error
	}
	granted := make(chan grant, 1)
	go func() {
		h, err := waiter.Wait(ctx, name)
		granted <- grant{h, time.Now(), err}
	}()
	time.Sleep(2*time.Millisecond + rand.N(2*time.Millisecond))
	released := time.Now()
	err := held.Release(ctx)
	g := <-granted
	if err == nil {
		err = g.err
	}
	return g.held, g.at.Sub(released), err
}
