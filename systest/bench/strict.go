package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// strict measures two clients that pass a lock to and fro: each releases it when the other has
// waited for some time.
func strict(age time.Duration) workload {
	return workload{
		name: fmt.Sprintf("strict-%dms", age.Milliseconds()), title: fmt.Sprintf("Two clients hand a name to and fro, after %s of waiting", age), base: relay,
		needs: peer.Waits, least: 10 * age, slow: age > 100*time.Millisecond,
		note: "From before the release until the other one has the lock.",
		metrics: []report.Metric{
			{Name: "p50", Title: "hand-off, median", Unit: "ms", Better: report.Less},
			{Name: "p99", Title: "99 %", Unit: "ms", Better: report.Less},
			perServer, perClient, perAllocs, perOuter, perInner,
		},
		run: func(ctx context.Context, t *trial) (sample, error) {
			p, err := beginPassing(ctx, t, age)
			if err != nil {
				return nil, err
			}
			if _, err := p.passFor(ctx, t.warmUp()); err != nil {
				return nil, err
			}
			var took []float64
			pass := func() (n int64, err error) {
				took, err = p.passFor(ctx, t.length)
				return int64(len(took)), err
			}
			s, err := t.cost(pass)
			if err != nil {
				return nil, err
			}
			s["p50"], s["p99"] = report.Median(took), report.Percentile(took, 99)
			if err := t.countAll(s, pass); err != nil {
				return nil, err
			}
			return s, p.held.Release(ctx)
		},
	}
}

// A passing is a lock that two clients pass to and fro.
type passing struct {
	name           string
	age            time.Duration // the least time of a wait when the holder releases the lock
	holder, waiter peer.Client
	held           peer.Held
}

// beginPassing makes the first of two clients take the lock.
func beginPassing(ctx context.Context, t *trial, age time.Duration) (p *passing, err error) {
	p = &passing{name: t.name, age: age}
	if p.holder, err = t.open(ctx); err != nil {
		return nil, err
	}
	if p.waiter, err = t.open(ctx); err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, p.holder, p.name); err != nil {
		return nil, err
	}
	p.held, err = p.holder.Wait(ctx, p.name)
	return p, err
}

// passFor passes the lock to and fro for some time, and returns the milliseconds of each
// hand-off.
func (p *passing) passFor(ctx context.Context, length time.Duration) (took []float64, err error) {
	for end := time.Now().Add(length); time.Now().Before(end); {
		d, err := p.pass(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, float64(d)/float64(time.Millisecond))
	}
	return took, nil
}

// pass passes the lock to the waiting client, and returns how long that took.
func (p *passing) pass(ctx context.Context) (time.Duration, error) {
	type grant struct {
		held peer.Held
		at   time.Time
		err  error
	}
	granted := make(chan grant, 1)
	go func() {
		h, err := p.waiter.Wait(ctx, p.name)
		granted <- grant{h, time.Now(), err}
	}()
	time.Sleep(p.age + rand.N(max(2*time.Millisecond, p.age/3))) // not in step with polling peers
	released := time.Now()
	err := p.held.Release(ctx)
	g := <-granted
	p.held, p.holder, p.waiter = g.held, p.waiter, p.holder
	return g.at.Sub(released), errors.Join(err, g.err)
}
