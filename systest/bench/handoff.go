package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

var errOverlap = errors.New("two hold the lock at the same time")

// A shift is workers of one process that want one name, again and again.
type shift struct {
	Name    string
	Workers int
	Work    time.Duration // with the lock held
	WarmUp  time.Duration // that is not counted
	Length  time.Duration // that is
}

// A door is what the workers of a process go through, one at a time.
type door struct {
	inside atomic.Int32
	last   atomic.Int64 // number of the worker that was inside last
	passed atomic.Int64 // how often that was another one than before
}

// do returns how many turns each worker had while it was counted, and how many of
// them followed one of another worker of this process. Whoever waits at the end
// has one more turn, so that nothing is left behind; but a waiter that is not woken
// is not waited for beyond the grace.
func (s shift) do(ctx context.Context, client peer.Client) (turns []int64, passed int64, err error) {
	turns = make([]int64, s.Workers)
	errs := make([]error, s.Workers)
	begin := time.Now().Add(s.WarmUp)
	end := begin.Add(s.Length)
	ctx, cancel := context.WithDeadline(ctx, end.Add(s.grace()))
	defer cancel()
	var d door
	var all sync.WaitGroup
	for i := range s.Workers {
		all.Go(func() {
			for now := time.Now(); now.Before(end) && errs[i] == nil; {
				var fromOther bool
				fromOther, errs[i] = s.turn(ctx, client, &d, int64(i+1))
				if ctx.Err() != nil {
					errs[i] = nil // it was not woken; what it had before counts
					return
				}
				if now = time.Now(); now.After(begin) && now.Before(end) {
					turns[i]++
					if fromOther {
						d.passed.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	return turns, d.passed.Load(), errors.Join(errs...)
}

// grace is how long all workers may take for their last turns.
func (s shift) grace() time.Duration { return 2*time.Second + 2*time.Duration(s.Workers)*s.Work }

// turn waits for the lock, works, and gives it back. fromOther says that another
// worker had the turn before.
func (s shift) turn(ctx context.Context, client peer.Client, d *door, worker int64) (fromOther bool, err error) {
	held, err := client.Wait(ctx, s.Name)
	if err != nil {
		return false, fmt.Errorf("wait: %w", err)
	}
	if d.inside.Add(1) > 1 {
		err = errOverlap
	}
	fromOther = d.last.Swap(worker) != worker
	if s.Work > 0 {
		time.Sleep(s.Work)
	}
	d.inside.Add(-1)
	return fromOther, errors.Join(err, held.Release(ctx))
}

func sum(turns []int64) (n int64) {
	for _, t := range turns {
		n += t
	}
	return n
}

// The metrics of hand-offs. A lock that goes back to whoever had it is a turn, but
// was not handed off; between processes nobody sees that, but Jain's index does
// where it is the rule.
var (
	handOffs = report.Metric{Name: "rate", Title: "hand-offs a second", Better: report.More}
	allTurns = report.Metric{Name: "turns", Title: "turns a second", Better: report.More}
)

// handOff is many goroutines of one process that want one name.
func handOff(workers int, work time.Duration) workload {
	return workload{
		name:    fmt.Sprintf("handoff-%d-%dms", workers, work.Milliseconds()),
		title:   fmt.Sprintf("%d goroutines want one name, and hold it for %s", workers, work),
		base:    relay,
		needs:   peer.Waits,
		metrics: []report.Metric{handOffs, allTurns, evenness, perServer, perClient, perOuter, perInner},
		run: func(ctx context.Context, t *trial) (sample, error) {
			client, err := t.open(ctx)
			if err != nil {
				return nil, err
			}
			s := shift{Name: t.name + "-warm", Workers: workers, Work: work, Length: t.warmUp()}
			if err := t.prepare(ctx, client, s.Name); err != nil {
				return nil, err
			}
			if _, _, err := s.do(ctx, client); err != nil {
				return nil, err
			}
			s.Name, s.Length = t.name, t.length
			if err := t.prepare(ctx, client, s.Name); err != nil {
				return nil, err
			}
			m, err := measure(t.store)
			if err != nil {
				return nil, err
			}
			turns, passed, err := s.do(ctx, client)
			if err != nil {
				return nil, err
			}
			figures, err := m.perOperation(sum(turns))
			if err != nil {
				return nil, err
			}
			figures["rate"] = float64(passed) / t.length.Seconds() // without those at the end
			figures["turns"] = float64(sum(turns)) / t.length.Seconds()
			figures["jain"] = report.Jain(turns)
			return figures, countTurns(ctx, t, client, s, figures)
		},
	}
}

// countTurns adds the commands of a turn to a sample.
func countTurns(ctx context.Context, t *trial, client peer.Client, s shift, figures sample) error {
	server, ok := t.store.(*redisStore)
	if !ok {
		return nil
	}
	s.Name, s.Length = t.name+"-counted", max(t.length/4, 5*s.Work)
	if err := t.prepare(ctx, client, s.Name); err != nil {
		return err
	}
	var turns int64
	c, err := count(server, func() error {
		all, _, err := s.do(ctx, client)
		turns = sum(all) + int64(s.Workers) // the turn of each at the end
		return err
	})
	figures["commands"], figures["inner"] = float64(c.outer)/float64(turns), float64(c.inner)/float64(turns)
	return err
}

// handOffCrews is the same in several processes.
func handOffCrews(crews, workers int, work time.Duration) workload {
	return workload{
		name:    fmt.Sprintf("handoff-%dx%d-%dms", crews, workers, work.Milliseconds()),
		title:   fmt.Sprintf("%d processes of %d goroutines want one name, and hold it for %s", crews, workers, work),
		base:    relay,
		needs:   peer.Waits,
		metrics: []report.Metric{allTurns, evenness, perServer, perClient},
		run: func(ctx context.Context, t *trial) (sample, error) {
			client, err := t.open(ctx)
			if err == nil {
				err = t.prepare(ctx, client, t.name)
			}
			if err != nil {
				return nil, err
			}
			s := shift{Name: t.name, Workers: workers, Work: work, WarmUp: t.warmUp(), Length: t.length}
			return s.inCrews(ctx, t, crews)
		},
	}
}

// inCrews has crews do the shift, and returns what they did together.
func (s shift) inCrews(ctx context.Context, t *trial, crews int) (sample, error) {
	var before time.Duration
	job := crewJob{Peer: t.peer.Name, Addr: t.store.addr(), TTL: t.ttl, Shift: s}
	results, err := runCrews(ctx, crews, job, func() (err error) {
		before, err = t.store.cpu()
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := t.store.cpu()
	if err != nil {
		return nil, err
	}
	var turns []int64
	var cpu time.Duration
	for _, r := range results {
		turns = append(turns, r.Turns...)
		cpu += r.CPU
	}
	n := sum(turns)
	if n == 0 {
		return nil, errIdle
	}
	// CPU is of all turns, those of the warm-up too.
	all := n * int64(s.WarmUp+s.Length) / int64(s.Length)
	return sample{
		"turns": float64(n) / s.Length.Seconds(), "jain": report.Jain(turns),
		"server": per(after-before, all), "client": per(cpu, all),
	}, nil
}
