package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// others are the numbers of other locks on the server, in increasing order.
var others = []int{0, 10_000, 100_000}

// The names of two metrics: the cost of a pair with so many other locks on the server,
// and its ratio to the cost without them.
func serverBeside(n int) string { return fmt.Sprintf("server-%d", n) }
func growthBeside(n int) string { return fmt.Sprintf("growth-%d", n) }

// beside measures one goroutine while another process holds other locks. One trial measures all
// numbers of locks, because their ratio matters.
func beside() workload {
	w := workload{
		name:  "beside",
		title: "One goroutine, beside other locks on the server",
		note:  "Growth is the server CPU of a pair beside so many other locks, divided by that without them.",
		base:  keeper,
		needs: peer.Takes | peer.Keeps | peer.Batches,
		ttl:   10 * time.Minute, // so that none is renewed meanwhile
		least: 500 * time.Millisecond,
		slow:  true,
		run:   byOne(runBeside),
	}
	for i := len(others) - 1; i > 0; i-- {
		w.metrics = append(w.metrics, report.Metric{
			Name: growthBeside(others[i]), Title: fmt.Sprintf("growth beside %s", report.Figure(float64(others[i]))), Better: report.Less,
		})
	}
	for _, n := range others {
		w.metrics = append(w.metrics, report.Metric{
			Name: serverBeside(n), Title: fmt.Sprintf("server CPU beside %s", report.Figure(float64(n))), Unit: "µs", Better: report.Less,
		})
	}
	return w
}

func runBeside(ctx context.Context, t *trial, client peer.Client) (s sample, err error) {
	s = sample{}
	held := 0
	for _, n := range others {
		if n > held {
			if _, _, err := t.crew(ctx, crewJob{Hold: n - held, Shift: shift{Name: fmt.Sprintf("%s-beside-%d", t.name, n)}}); err != nil {
				return nil, err
			}
			held = n
		}
		if s[serverBeside(n)], err = serverOfPair(ctx, t, client); err != nil {
			return nil, err
		}
		s[growthBeside(n)] = s[serverBeside(n)] / s[serverBeside(0)]
	}
	delete(s, growthBeside(0))
	return s, nil
}

// serverOfPair returns the server CPU of a pair, with server and client on cores of their own.
func serverOfPair(ctx context.Context, t *trial, client peer.Client) (float64, error) {
	undo, err := splitCores.apply(t.store.pid())
	if err != nil {
		return 0, err
	}
	defer undo()
	s, err := oneByOne(ctx, t, client)
	return s["server"], err
}
