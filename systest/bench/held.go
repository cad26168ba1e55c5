package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// takers is how many goroutines take the locks of held.
const takers = 64

// held is many leases that are held for the length of their TTL.
func held(n int, ttl time.Duration) workload {
	return workload{
		name:  fmt.Sprintf("held-%d", n),
		title: fmt.Sprintf("%s leases are held, TTL %s", report.Figure(float64(n)), ttl),
		base:  keeper,
		needs: peer.Takes | peer.Keeps, ttl: ttl,
		metrics: []report.Metric{
			{Name: "rate", Title: "commands a second", Better: report.Less},
			{Name: "server", Title: "server, of a core", Unit: "%", Better: report.Less},
			{Name: "client", Title: "client, of a core", Unit: "%", Better: report.Less},
			{Name: "memory", Title: "client's memory a lease", Unit: "kB", Better: report.Less},
			{Name: "goroutines", Title: "goroutines", Better: report.Less},
			{Name: "longest", Title: "longest script", Unit: "ms", Better: report.Less},
		},
		run: func(ctx context.Context, t *trial) (sample, error) {
			client, err := t.open(ctx)
			if err != nil {
				return nil, err
			}
			before, goroutines := heap(), runtime.NumGoroutine()
			if err := take(ctx, client, t.name, n); err != nil {
				return nil, err
			}
			time.Sleep(ttl / 2) // until renewals have found their pace
			s := sample{
				"memory":     (float64(heap()) - float64(before)) / 1000 / float64(n),
				"goroutines": float64(runtime.NumGoroutine() - goroutines),
			}
			return s, t.renewals(ttl, s)
		},
	}
}

// renewals adds to a sample what it costs to hold locks for some time.
func (t *trial) renewals(length time.Duration, s sample) error {
	server, isRedis := t.store.(*redisStore)
	if isRedis {
		if err := server.forgetStats(); err != nil {
			return err
		}
	}
	m, err := measure(t.store)
	if err != nil {
		return err
	}
	time.Sleep(length)
	u, err := m.taken()
	if err != nil {
		return err
	}
	s["server"] = 100 * u.server.Seconds() / u.wall.Seconds()
	s["client"] = 100 * u.client.Seconds() / u.wall.Seconds()
	if !isRedis {
		return nil
	}
	calls, longest, err := server.scripts()
	s["rate"], s["longest"] = float64(calls)/u.wall.Seconds(), longest.Seconds()*1000
	return err
}

// take takes n locks whose names begin with name.
func take(ctx context.Context, client peer.Client, name string, n int) error {
	var next atomic.Int64
	errs := make([]error, takers)
	var all sync.WaitGroup
	for i := range takers {
		all.Go(func() {
			for j := next.Add(1); j <= int64(n) && errs[i] == nil; j = next.Add(1) {
				_, errs[i] = client.Try(ctx, name+"-"+strconv.FormatInt(j, 10))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// forgetStats lets scripts begin anew, and makes the server keep the longest.
func (s *redisStore) forgetStats() error {
	if _, err := s.server.Do("CONFIG", "SET", "latency-tracking-info-percentiles", "100"); err != nil {
		return err
	}
	_, err := s.server.Do("CONFIG", "RESETSTAT")
	return err
}

// scripts returns how many there were since forgetStats, and how long the
// longest took. All that peers do to hold locks on Redis is in scripts.
func (s *redisStore) scripts() (calls int, longest time.Duration, err error) {
	stats, err := s.server.Do("INFO", "commandstats")
	if err != nil {
		return 0, 0, err
	}
	latency, err := s.server.Do("INFO", "latencystats")
	if err != nil {
		return 0, 0, err
	}
	for _, command := range []string{"eval", "evalsha"} {
		if text, ok := infoField(stats, "cmdstat_"+command); ok {
			n, err := strconv.Atoi(infoPart(text, "calls"))
			if err != nil {
				return 0, 0, err
			}
			calls += n
		}
		if text, ok := infoField(latency, "latency_percentiles_usec_"+command); ok {
			us, err := strconv.ParseFloat(infoPart(text, "p100"), 64)
			if err != nil {
				return 0, 0, err
			}
			longest = max(longest, time.Duration(us*float64(time.Microsecond)))
		}
	}
	return calls, longest, nil
}

// infoPart returns a part of a field of INFO: of "calls=3,usec=12", calls is 3.
func infoPart(text, name string) string {
	for part := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(part, "="); key == name {
			return value
		}
	}
	return ""
}
