package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// patience bounds what a trial may take beside the time that it measures.
const patience = 2 * time.Minute

// maxFailures is after how many rounds without a result a peer has no more turns
// at a workload.
const maxFailures = 2

// A bench runs workloads.
type bench struct {
	stores *inventory
	rounds int
	length time.Duration // of one sample
	peers  []peer.Peer
	log    io.Writer
	trials int // so far, for names
}

// run runs a workload: each round has one trial of each peer that can do it.
func (b *bench) run(ctx context.Context, w workload) (report.Workload, error) {
	result := report.Workload{Name: w.name, Title: w.title, Note: w.note, Base: w.base, Metrics: w.metrics}
	var able []peer.Peer
	for _, p := range b.peers {
		if p.Can&w.needs == w.needs {
			able = append(able, p)
			result.Peers = append(result.Peers, report.Peer{Name: p.Name, Settings: p.Settings, Floor: p.Floor, Samples: map[string][]float64{}})
		}
	}
	failures := make([]int, len(able))
	for round := range b.rounds {
		for i, p := range able {
			row := &result.Peers[i]
			if failures[i] == maxFailures {
				continue
			}
			begun := time.Now()
			s, err := b.try(ctx, w, p)
			if ctx.Err() != nil {
				return result, ctx.Err()
			}
			if err != nil {
				failures[i]++
				row.Reason = fmt.Sprintf("failed in %d rounds: %v", failures[i], err)
			}
			for metric, v := range s {
				if !math.IsNaN(v) { // there was nothing to measure
					row.Samples[metric] = append(row.Samples[metric], v)
				}
			}
			b.tell(w, round, p, s, err, time.Since(begun))
		}
	}
	return result, nil
}

// try is one trial.
func (b *bench) try(ctx context.Context, w workload, p peer.Peer) (s sample, err error) {
	store, err := b.stores.store(p.Store)
	if err != nil {
		return nil, err
	}
	b.trials++
	t := &trial{peer: p, store: store, name: fmt.Sprintf("bench-%d", b.trials), ttl: w.ttl, length: b.length}
	ctx, cancel := context.WithTimeout(ctx, patience+b.length+2*w.ttl)
	defer cancel()
	defer func() {
		if e := t.close(); err == nil {
			err = e
		}
	}()
	return w.run(ctx, t)
}

// tell says how it goes.
func (b *bench) tell(w workload, round int, p peer.Peer, s sample, err error, took time.Duration) {
	figure := "–"
	if v, ok := s[w.metrics[0].Name]; ok {
		figure = report.Figure(v) + " " + w.metrics[0].Unit
	}
	if err != nil {
		figure = err.Error()
	}
	fmt.Fprintf(b.log, "%s %d/%d  %-22s %s  (%s)\n", w.name, round+1, b.rounds, p.Name, figure, took.Round(10*time.Millisecond))
}
