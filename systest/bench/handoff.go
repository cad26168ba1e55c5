package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

var errOverlap = errors.New("two hold the lock at the same time")

// A shift is a group of workers of one process that compete for one name again and again.
type shift struct {
	Name    string
	Workers int
	Work    time.Duration // with the lock held
	WarmUp  time.Duration // not counted
	Length  time.Duration // counted
}

// marks are called when the counted part of a shift begins and when it ends.
type marks struct{ begin, end func() error }

// unmarked marks nothing. It is for shifts of which only the turns matter.
var unmarked = marks{func() error { return nil }, func() error { return nil }}

// A worker is one worker of a shift.
type worker struct {
	shift
	client  peer.Client
	door    *door
	number  int64
	counted *atomic.Bool // whether turns are counted now
	turns   int64
}

// do returns how many turns each worker had in the counted part. The numbers of the workers begin
// with first. Workers that wait at the end give up.
func (s shift) do(ctx context.Context, client peer.Client, d *door, first int64, m marks) (turns []int64, err error) {
	workers, errs := make([]worker, s.Workers), make([]error, s.Workers)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var counted atomic.Bool
	var all sync.WaitGroup
	for i := range workers {
		workers[i] = worker{shift: s, client: client, door: d, number: first + int64(i), counted: &counted}
		all.Go(func() {
			if errs[i] = workers[i].work(ctx, waiting); errs[i] != nil {
				stop() // the measurement is void
			}
		})
	}
	sleep(waiting, s.WarmUp)
	err = m.begin()
	counted.Store(true)
	sleep(waiting, s.Length)
	counted.Store(false)
	err = errors.Join(err, m.end())
	stop()
	all.Wait()
	for i := range workers {
		turns = append(turns, workers[i].turns)
	}
	return turns, errors.Join(append(errs, err)...)
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work waits for the lock, works, and releases it, until waiting ends.
func (w *worker) work(ctx, waiting context.Context) error {
	for waiting.Err() == nil {
		held, err := w.client.Wait(waiting, w.Name)
		if err != nil && waiting.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		err = w.turn()
		if err = errors.Join(err, held.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// turn is one turn of a worker, with the lock held.
func (w *worker) turn() error {
	fromOther, err := w.door.enter(w.number)
	if w.counted.Load() {
		w.turns++
		if fromOther {
			w.door.passed.Add(1)
		}
	}
	if w.Work > 0 {
		time.Sleep(w.Work)
	}
	w.door.leave()
	return err
}

func sum(turns []int64) (n int64) {
	for _, t := range turns {
		n += t
	}
	return n
}

// The metrics of hand-offs. If the last holder takes a lock again, that is a turn but no
// hand-off. Figures per hand-off are counted per turn.
var (
	handOffs = report.Metric{Name: "rate", Title: "hand-offs a second", Better: report.More}
	allTurns = report.Metric{Name: "turns", Title: "turns a second", Better: report.More}
)

// shiftWarmUp is how long a shift runs before it is counted, so that all workers are connected
// and wait.
const shiftWarmUp = 100 * time.Millisecond

// A shift whose commands are counted runs for longer, so that the commands of its start do not
// count.
const (
	countWarmUp = 200 * time.Millisecond
	countLength = 300 * time.Millisecond
)

// turnsPerWorker is how many turns each worker has in a sample, at least, if a turn takes no longer
// than the work.
const turnsPerWorker = 2

// handOff measures goroutines of one process that want one name.
func handOff(workers int, work time.Duration) workload {
	w := handOffOf(1, workers, work)
	w.name = fmt.Sprintf("handoff-%d-%dms", workers, work.Milliseconds())
	w.title = fmt.Sprintf("%d goroutines want one name, and hold it for %s", workers, work)
	w.metrics = []report.Metric{handOffs, allTurns, evenness, perServer, perClient, perAllocs, perOuter, perInner}
	return w
}

// handOffCrews measures goroutines of several processes that want one name.
func handOffCrews(crews, workers int, work time.Duration) workload {
	w := handOffOf(crews, workers, work)
	w.name = fmt.Sprintf("handoff-%dx%d-%dms", crews, workers, work.Milliseconds())
	w.title = fmt.Sprintf("%d processes of %d goroutines want one name, and hold it for %s", crews, workers, work)
	w.metrics = []report.Metric{handOffs, allTurns, evenness, perServer, perClient, perOuter, perInner}
	return w
}

// handOffOf returns a workload of workers in this process or, if there are several crews, in each
// of them.
func handOffOf(crews, workers int, work time.Duration) workload {
	return workload{
		base: relay, needs: peer.Waits, slow: work > time.Millisecond,
		least: turnsPerWorker * time.Duration(crews*workers) * work,
		run: byOne(func(ctx context.Context, t *trial, client peer.Client) (sample, error) {
			return t.handOffs(ctx, client, workers, work, func(ctx context.Context, s shift, d *door, m marks) ([]int64, time.Duration, error) {
				if crews > 1 {
					return s.inCrews(ctx, t, crews, m)
				}
				turns, err := s.do(ctx, client, d, 1, m)
				return turns, 0, err
			})
		}),
	}
}

// handOffs measures a shift that do runs, and counts its commands in a second shift. do also
// returns the client CPU if other processes use it.
func (t *trial) handOffs(ctx context.Context, client peer.Client, workers int, work time.Duration,
	do func(context.Context, shift, *door, marks) ([]int64, time.Duration, error),
) (sample, error) {
	s := shift{Name: t.name, Workers: workers, Work: work, WarmUp: shiftWarmUp, Length: t.length}
	d, err := sharedDoor(t.door(s.Name))
	if err == nil {
		err = t.prepare(ctx, client, s.Name)
	}
	if err != nil {
		return nil, err
	}
	var m *meter
	var u usage
	turns, cpu, err := do(ctx, s, d, marks{
		begin: func() (err error) { m, err = measure(t.store); return err },
		end:   func() (err error) { u, err = m.taken(); return err },
	})
	if d.mixed.Load() > 0 {
		err = errOverlap
	}
	if err != nil {
		return nil, err
	}
	if cpu > 0 {
		u.client = cpu
	}
	figures, err := u.perOperation(sum(turns))
	if err != nil {
		return nil, err
	}
	figures["turns"], figures["rate"] = figures["rate"], float64(d.passed.Load())/u.wall.Seconds()
	figures["jain"] = report.Jain(turns)
	return figures, t.count(figures, func(m marks) (int64, error) {
		s.Name, s.WarmUp, s.Length = t.name+"-counted", countWarmUp, max(t.length, countLength, 50*work)
		if err := t.prepare(ctx, client, s.Name); err != nil {
			return 0, err
		}
		turns, _, err := do(ctx, s, d, m)
		return sum(turns), err
	})
}

// door returns the file of the door of a name.
func (t *trial) door(name string) string { return filepath.Join(t.dir, name) }

// inCrews makes crews do the shift at the same time, and returns their turns and the CPU that
// they used. It ends the crews.
func (s shift) inCrews(ctx context.Context, t *trial, crews int, m marks) (turns []int64, cpu time.Duration, err error) {
	defer t.dismiss()
	for i := range crews {
		job := crewJob{Shift: s, First: int64(i*s.Workers + 1), Door: t.door(s.Name)}
		if _, _, err := t.crew(ctx, job); err != nil {
			return nil, 0, err
		}
	}
	for _, c := range t.crews {
		if err := c.tell(); err != nil {
			return nil, 0, err
		}
	}
	time.Sleep(s.WarmUp)
	err = m.begin()
	time.Sleep(s.Length)
	err = errors.Join(err, m.end())
	for _, c := range t.crews {
		status, e := c.next()
		if err = errors.Join(err, e); err != nil {
			return nil, 0, err
		}
		turns, cpu = append(turns, status.Turns...), cpu+status.CPU
	}
	return turns, cpu, nil
}
