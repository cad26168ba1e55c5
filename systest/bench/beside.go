package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// others are how many other locks the client of beside holds.
var others = []int{0, 10_000, 100_000}

// serverBeside is the name of what a pair costs beside so many other locks.
func serverBeside(n int) string { return fmt.Sprintf("server-%d", n) }

// beside is one goroutine, while the same client holds other locks. All is measured in
// one trial, because what is asked is how it grows.
func beside() workload {
	w := workload{
		name:  "beside",
		title: "One goroutine, beside other locks of its client",
		note:  "The greatest server CPU of a pair beside other locks, divided by that without them.",
		base:  keeper,
		needs: peer.Takes | peer.Keeps | peer.Batches,
		ttl:   10 * time.Minute, // none is renewed meanwhile
		slow:  true,
		run:   runBeside,
	}
	w.metrics = append(w.metrics, report.Metric{Name: "growth", Title: "growth", Better: report.Less})
	for _, n := range others {
		w.metrics = append(w.metrics, report.Metric{
			Name: serverBeside(n), Title: fmt.Sprintf("server CPU beside %s", report.Figure(float64(n))), Unit: "µs", Better: report.Less,
		})
	}
	return w
}

func runBeside(ctx context.Context, t *trial) (sample, error) {
	client, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	undo, err := splitCores.apply(t.store.pid())
	if err != nil {
		return nil, err
	}
	defer undo()
	s := sample{}
	for held, i := 0, 0; i < len(others); i++ {
		if err := take(ctx, client, fmt.Sprintf("%s-other-%d", t.name, i), others[i]-held); err != nil {
			return nil, err
		}
		held = others[i]
		pairs, err := oneByOne(ctx, t, client)
		if err != nil {
			return nil, err
		}
		s[serverBeside(held)] = pairs["server"]
		s["growth"] = max(s["growth"], pairs["server"]/s[serverBeside(0)])
	}
	return s, nil
}
