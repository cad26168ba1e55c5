package systest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A turn records one acquisition of a worker. Its instants are nanoseconds of the wall clock, which
// all processes of a machine share.
type turn struct{ Asked, Got int64 }

func (t turn) wait() time.Duration { return time.Duration(t.Got - t.Asked) }

// turns are the turns of one worker.
type turns []turn

// takeTurns is a job: all workers take the same lock again and again.
func takeTurns(ctx context.Context, j traffic.Job) (any, error) {
	client, engine, err := j.Client(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	defer client.Close()
	all := make([]turns, j.Workers)
	errs := make(chan error, j.Workers)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			var err error
			if all[i], err = takeTurnsFor(ctx, client, j); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	return all, <-errs
}

// takeTurnsFor is one worker. Its first turn does not count, because all workers queue for that
// before the test begins.
func takeTurnsFor(ctx context.Context, client *holdfast.Client, j traffic.Job) (t turns, err error) {
	var end time.Time
	for first := true; first || time.Now().Before(end); first = false {
		asked := time.Now()
		lease, err := client.Acquire(ctx, j.Name, nil)
		if err != nil {
			return nil, err
		}
		if got := time.Now(); first {
			end = got.Add(j.For)
		} else {
			t = append(t, turn{asked.UnixNano(), got.UnixNano()})
		}
		time.Sleep(j.Hold) // the work
		if err := lease.Release(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// jain returns Jain's fairness index of the workers' turns: 1 if all had the same number, 1/n if
// one worker had all.
func jain(all []turns) float64 {
	sum, squares := 0.0, 0.0
	for _, t := range all {
		sum += float64(len(t))
		squares += float64(len(t)) * float64(len(t))
	}
	return sum * sum / (float64(len(all)) * squares)
}

// commands returns how many commands clients have sent to the server, without those that scripts
// ran.
func (s *store) commands(t *testing.T) int {
	t.Helper()
	sum := 0
	for _, command := range []string{"evalsha", "eval", "script", "hello", `client\|[a-z-]+`, "subscribe", "unsubscribe", "ping", "command", "info"} {
		sum += s.calls(t, command)
	}
	return sum
}

// TestTurnsAreFair checks that all waiters get equally many turns and wait equally long, in one
// process and in many, with and without work under the lock. INVARIANT I7.
func TestTurnsAreFair(t *testing.T) {
	for _, crews := range []struct{ processes, workers int }{{1, 16}, {8, 4}} {
		for _, hold := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%dx%d/%s", crews.processes, crews.workers, hold), func(t *testing.T) {
				j := traffic.Job{Job: "take turns", Name: "turns", Workers: crews.workers, For: 2 * time.Second, Hold: hold}
				// The machine itself may pause: then all wait long, and a process that could not
				// run has missed turns.
				const attempts = 3
				for range attempts {
					if even := checkFairness(t, crews.processes, j); even {
						return
					}
				}
				t.Errorf("in each of %d attempts somebody waited much longer than others, or had fewer turns, on a machine that did not pause", attempts)
			})
		}
	}
}

// checkFairness lets crews take turns and fails t if a worker was passed over, or the turns cost
// too many commands. It reports whether turns and waits were even, or the machine paused too long
// to judge.
func checkFairness(t *testing.T, processes int, j traffic.Job) (even bool) {
	t.Helper()
	s := newStore(t)
	defer s.server.Kill()
	j.Store = s.server.URL
	pause := testsvc.WatchPauses()
	all, commands := s.takeTurnsIn(t, processes, j)
	paused := pause()

	index, perTurn := jain(all), float64(commands)/float64(len(slices.Concat(all...)))
	median, longest := waitTimes(all)
	usual, most := overtaken(all)
	seen := fmt.Sprintf("%d acquisitions: Jain's index %.4f, %.2f commands each; usually %d others were served before, at most %d; wait median %s, longest %s (%.1f times)",
		len(slices.Concat(all...)), index, perTurn, usual, most, median, longest, float64(longest)/float64(median))
	t.Logf("%s; the machine paused for %s", seen, paused)
	if index < 0.9 {
		t.Errorf("Jain's index %.4f, want at least 0.9 on any machine", index)
	}
	if perTurn > 2.5 {
		t.Errorf("%.2f commands for each acquisition, want at most 2.5", perTurn)
	}
	// Each process has one subscription, and never gives it up as dead. This process may have one
	// as well, if it held the lock for long until all workers were queued.
	if n := s.calls(t, "subscribe"); n < processes || n > processes+1 {
		t.Errorf("%d subscriptions were made by %d processes", n, processes)
	}
	// A worker that waits for a core comes late to the queue, above all under the race detector,
	// which runs goroutines in a random order.
	if most > 5*usual {
		t.Errorf("%d others were served before somebody's next turn, want at most five times the usual %d", most, usual)
	}
	even = longest <= 3*median && index >= 0.98 || paused > median/4
	if even {
		report.Row(t, fmt.Sprintf("%d workers in %d processes take turns, %s of work", len(all), processes, j.Hold),
			"Jain's index 0.98, 2.5 commands each, longest wait 3 medians", "%s", seen)
	}
	return even
}

// waitTimes returns the median and the longest of all waits.
func waitTimes(all []turns) (median, longest time.Duration) {
	var sorted []time.Duration
	for _, turn := range slices.Concat(all...) {
		sorted = append(sorted, turn.wait())
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// overtaken returns how many turns others had between two turns of one worker: the median and the
// maximum.
func overtaken(all []turns) (usual, most int) {
	var got []int64
	for _, turn := range slices.Concat(all...) {
		got = append(got, turn.Got)
	}
	slices.Sort(got)
	var between []int
	for _, worker := range all {
		for i := range len(worker) - 1 {
			from, _ := slices.BinarySearch(got, worker[i].Got)
			to, _ := slices.BinarySearch(got, worker[i+1].Got)
			between = append(between, to-from-1)
		}
	}
	slices.Sort(between)
	return between[len(between)/2], between[len(between)-1]
}

// takeTurnsIn lets crews do the same job concurrently, and returns the turns of all workers and how
// many commands they sent. They begin when all of them are in the queue.
func (s *store) takeTurnsIn(t *testing.T, processes int, j traffic.Job) (all []turns, commands int) {
	t.Helper()
	gate, err := newClient(t, s.engine, nil).Acquire(t.Context(), j.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	crews := make([]*traffic.Crew, processes)
	for i := range crews {
		crews[i] = traffic.Start(t, j)
		crews[i].Begin()
	}
	s.awaitQueue(t, j.Name, processes*j.Workers)
	before := s.commands(t)
	if err := gate.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range crews {
		var got []turns
		c.Next(&got)
		all = append(all, got...)
	}
	return all, s.commands(t) - before
}
