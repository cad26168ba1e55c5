package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// patience bounds the time of a trial, not counting the time that it measures.
const patience = 2 * time.Minute

// maxFailures is the number of rounds without a result after which a peer has no more turns at a
// workload.
const maxFailures = 2

// A bench runs workloads.
type bench struct {
	stores *inventory
	dir    string // for files, until the end
	rounds int
	length time.Duration // of one sample
	peers  []peer.Peer
	log    io.Writer
	trials int // so far, for names
}

// A contest is a workload that is being measured.
type contest struct {
	*bench
	load     workload
	able     []peer.Peer // the peers with the needed abilities
	failures []int       // of each peer
	result   report.Workload
}

// measure runs a workload. With an error it returns the results so far.
func (b *bench) measure(ctx context.Context, w workload) (report.Workload, error) {
	c := &contest{bench: b, load: w}
	c.result = report.Workload{Name: w.name, Title: w.title, Note: w.note, Base: w.base, Metrics: w.metrics}
	for _, p := range b.peers {
		if p.Can&w.needs == w.needs && (!w.best || !p.Default) {
			c.able = append(c.able, p)
			c.result.Peers = append(c.result.Peers, report.Peer{Name: p.Name, Settings: p.Settings, Floor: p.Floor, Samples: map[string][]float64{}})
		}
	}
	c.failures = make([]int, len(c.able))
	if w.begin == nil {
		return c.result, c.inTurns(ctx)
	}
	for _, group := range c.groups() {
		if err := c.sideBySide(ctx, group); err != nil {
			return c.result, err
		}
	}
	return c.result, nil
}

// groups returns the groups of peers that are measured side by side.
func (c *contest) groups() (groups [][]int) {
	var best, defaults []int
	for i, p := range c.able {
		if c.load.apart && p.Default {
			defaults = append(defaults, i)
		} else {
			best = append(best, i)
		}
	}
	for _, group := range [][]int{best, defaults} {
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// trial returns a new trial of a peer.
func (c *contest) trial(p peer.Peer, s store, first bool) *trial {
	c.trials++
	return &trial{
		peer: p, store: s, name: fmt.Sprintf("bench-%d", c.trials), ttl: c.load.ttl,
		length: max(c.length, c.load.least), counts: first, dir: c.dir,
	}
}

// limit bounds the time of n rounds.
func (c *contest) limit(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience+time.Duration(n)*(max(c.length, c.load.least)+5*c.load.ttl))
}

// inTurns runs rounds with one trial of each peer.
func (c *contest) inTurns(ctx context.Context) error {
	for n := range c.rounds {
		for i, p := range c.able {
			if c.failures[i] == maxFailures {
				continue
			}
			begun := time.Now()
			s, err := c.turn(ctx, p, n == 0)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.note(i, n, s, err, time.Since(begun))
		}
	}
	return nil
}

// turn runs one trial.
func (c *contest) turn(ctx context.Context, p peer.Peer, first bool) (s sample, err error) {
	store, err := c.stores.store(p.Store)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.limit(ctx, 1)
	defer cancel()
	t := c.trial(p, store, first)
	s, err = c.load.run(ctx, t)
	return s, errors.Join(err, t.close())
}

// sideBySide runs one trial of each peer of a group, all at the same time, with rounds that begin
// together.
func (c *contest) sideBySide(ctx context.Context, group []int) error {
	own := new(life)
	defer own.end()
	trials := make([]*trial, len(c.able))
	for _, i := range group {
		store, err := startStore(own, c.able[i].Store)
		if err != nil {
			return err
		}
		trials[i] = c.trial(c.able[i], store, true)
	}
	limited, cancel := c.limit(ctx, c.rounds+1)
	defer cancel()
	rounds := make([]round, len(c.able))
	for i, err := range c.each(group, func(i int) (err error) {
		rounds[i], err = c.load.begin(limited, trials[i])
		return err
	}) {
		if err != nil {
			c.failures[i], c.result.Peers[i].Reason = maxFailures, reason(err)
		}
	}
	for n := range c.rounds {
		begun := time.Now()
		samples := make([]sample, len(c.able))
		errs := c.each(group, func(i int) (err error) {
			samples[i], err = rounds[i](limited)
			return err
		})
		if ctx.Err() != nil {
			break
		}
		for _, i := range group {
			if c.failures[i] < maxFailures {
				c.note(i, n, samples[i], errs[i], time.Since(begun))
			}
		}
	}
	errs := []error{ctx.Err()}
	for _, i := range group {
		errs = append(errs, trials[i].close())
	}
	return errors.Join(errs...)
}

// each calls f for all peers of a group that have not failed too often, at the same
// time, and returns their errors.
func (c *contest) each(group []int, f func(i int) error) []error {
	errs := make([]error, len(c.able))
	var all sync.WaitGroup
	for _, i := range group {
		if c.failures[i] < maxFailures {
			all.Go(func() { errs[i] = caught(func() error { return f(i) }) })
		}
	}
	all.Wait()
	return errs
}

// reason returns the first line of an error, which may have a line for each goroutine.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// note records the sample of a peer in a round, and prints the progress.
func (c *contest) note(i, n int, s sample, err error, took time.Duration) {
	row := &c.result.Peers[i]
	if err != nil {
		c.failures[i]++
		row.Reason = fmt.Sprintf("failed in %d rounds: %s", c.failures[i], reason(err))
	}
	for metric, v := range s {
		if !math.IsNaN(v) { // there was nothing to measure
			row.Samples[metric] = append(row.Samples[metric], v)
		}
	}
	figure := "–"
	if v, ok := s[c.load.metrics[0].Name]; ok {
		figure = report.Figure(v) + " " + c.load.metrics[0].Unit
	}
	if err != nil {
		figure = reason(err)
	}
	fmt.Fprintf(c.log, "%s %d/%d  %-22s %s  (%s)\n", c.load.name, n+1, c.rounds, row.Name, figure, took.Round(10*time.Millisecond))
}
