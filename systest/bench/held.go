package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// takers is how many goroutines take the locks of held.
const takers = 64

// heldAtMost bounds a sample of held. Even then it has two renewals of each lease.
const heldAtMost = 20 * time.Second

// held measures many leases of one process. A sample takes as long as their TTL, so that each
// includes renewals of all leases.
func held(n int, ttl time.Duration, needs peer.Ability) workload {
	return workload{
		name:  fmt.Sprintf("held-%d", n),
		title: fmt.Sprintf("%s leases are held, TTL %s", report.Figure(float64(n)), ttl),
		base:  keeper,
		needs: peer.Takes | needs, ttl: ttl, slow: true, apart: true,
		metrics: []report.Metric{
			{Name: "rate", Title: "scripts a second", Better: report.Less},
			{Name: "server", Title: "server, of a core", Unit: "%", Better: report.Less},
			{Name: "client", Title: "client, of a core", Unit: "%", Better: report.Less},
			{Name: "memory", Title: "client's memory a lease", Unit: "kB", Better: report.Less},
			{Name: "goroutines", Title: "goroutines", Better: report.Less},
			{Name: "longest", Title: "longest script", Unit: "ms", Better: report.Less},
		},
		begin: func(ctx context.Context, t *trial) (round, error) {
			c, ready, err := t.crew(ctx, crewJob{Hold: n, Shift: shift{Name: t.name}})
			if err != nil {
				return nil, err
			}
			sleep(ctx, ttl/2) // until renewals are evenly spread
			return func(ctx context.Context) (sample, error) {
				s, err := t.renewals(ctx, c, min(ttl, heldAtMost))
				if err == nil {
					s["memory"], s["goroutines"] = float64(ready.Memory)/1000/float64(n), float64(ready.Goroutines)
				}
				return s, err
			}, nil
		},
	}
}

// renewals returns the cost of a crew that holds its locks for some time.
func (t *trial) renewals(ctx context.Context, c *crew, length time.Duration) (sample, error) {
	before, err := c.ask()
	if err != nil {
		return nil, err
	}
	s, u, err := t.idle(ctx, length)
	if err != nil {
		return nil, err
	}
	after, err := c.ask()
	s["client"] = ofCore(after.CPU-before.CPU, u)
	return s, err
}

// idle measures what happens in some time without orders.
func (t *trial) idle(ctx context.Context, length time.Duration) (s sample, u usage, err error) {
	server, isRedis := t.store.(*redisStore)
	if isRedis {
		if err := server.forgetStats(); err != nil {
			return nil, u, err
		}
	}
	m, err := measure(t.store)
	if err != nil {
		return nil, u, err
	}
	sleep(ctx, length)
	u, err = m.taken()
	s = sample{"server": ofCore(u.server, u), "client": ofCore(u.client, u)}
	if isRedis { // peers hold locks on Redis by scripts only
		s["rate"], s["longest"] = float64(u.scripts.calls)/u.wall.Seconds(), u.scripts.longest.Seconds()*1000
	}
	return s, u, err
}

// ofCore returns CPU time in percent of a core.
func ofCore(cpu time.Duration, u usage) float64 { return 100 * cpu.Seconds() / u.wall.Seconds() }

// takeTries is how often take tries to take a lock: some peers give up soon if the
// server is busy.
const takeTries = 5

// take takes n locks whose names begin with name.
func take(ctx context.Context, client peer.Client, name string, n int) ([]peer.Held, error) {
	var next atomic.Int64
	held, errs := make([]peer.Held, n), make([]error, takers)
	var all sync.WaitGroup
	for i := range takers {
		all.Go(func() {
			for j := next.Add(1); j <= int64(n) && errs[i] == nil; j = next.Add(1) {
				held[j-1], errs[i] = takeOne(ctx, client, oneOf(name, j))
			}
		})
	}
	all.Wait()
	return held, errors.Join(errs...)
}

func takeOne(ctx context.Context, client peer.Client, name string) (held peer.Held, err error) {
	for range takeTries {
		if held, err = client.Try(ctx, name); err == nil {
			return held, nil
		}
	}
	return nil, fmt.Errorf("take %s, %d times: %w", name, takeTries, err)
}

// oneOf returns the name of the nth lock of take.
func oneOf(name string, n int64) string { return name + "-" + strconv.FormatInt(n, 10) }
