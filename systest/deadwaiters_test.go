package systest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A served reports that a waiter had the lock. At is an instant of the wall clock, which all
// processes of a machine share.
type served struct {
	LeaseID lockinfo.LeaseID
	Token   uint64
	At      time.Time
}

// queueUp is a job: each worker waits for the lock once, and reports when it had the lock.
func queueUp(ctx context.Context, j traffic.Job) (any, error) {
	client, engine, err := j.Client(ctx, &holdfast.Options{TTL: j.TTL})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	defer client.Close()
	errs := make(chan error, j.Workers)
	var wg sync.WaitGroup
	for range j.Workers {
		wg.Go(func() {
			lease, err := client.Acquire(ctx, j.Name, nil)
			if err != nil {
				errs <- err
				return
			}
			j.Out(served{lease.ID(), lease.Token(), time.Now()})
			if err := lease.Release(ctx); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	return served{}, <-errs
}

// TestDeadWaitersDelayOnce checks a thousand waiters of which half die with their processes. The
// others are served in the order of the queue, and all the dead waiters together delay them by at
// most one waiter TTL. INVARIANT I7.
func TestDeadWaitersDelayOnce(t *testing.T) {
	const crewsEach, workers = 5, 100
	const waiterTTL = 5 * time.Second
	s := newStore(t)
	gate, err := newClient(t, s.engine, nil).Acquire(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	var living, dying []*traffic.Crew
	for i := range 2 * crewsEach {
		c := traffic.Start(t, traffic.Job{Job: "queue up", Store: s.server.URL, Name: "a", Workers: workers})
		c.Begin()
		if i%2 == 0 {
			dying = append(dying, c) // including the first of the queue
		} else {
			living = append(living, c)
		}
		s.awaitQueue(t, "a", (i+1)*workers)
	}
	queue, err := s.do(t, "ZRANGE", key("queue", "a"), "0", "-1").AsStrSlice() // Inspect returns only the first
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range dying {
		c.Kill()
	}
	killed := time.Now()
	if err := gate.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := collect(t, living, workers)
	checkOrder(t, queue, got)

	longest, last := time.Duration(0), killed
	for _, s := range got {
		longest, last = max(longest, s.At.Sub(last)), s.At
	}
	report.Row(t, "half of 1,000 waiters are killed with their processes", "the others are served in order; the dead cost one waiter TTL",
		"%d of %d served within %s, the longest hand-over %s, waiter TTL %s", len(got), len(queue),
		last.Sub(killed).Round(time.Millisecond), longest.Round(time.Millisecond), waiterTTL)
	if bound := waiterTTL + time.Second; longest > bound {
		t.Errorf("a hand-over took %s, want at most %s", longest, bound)
	}
	if bound := waiterTTL + 5*time.Second; last.Sub(killed) > bound {
		t.Errorf("all were served after %s, want %s: the dead cost more than once", last.Sub(killed), bound)
	}
}

// collect returns the reports of the crews in the order of the tokens.
func collect(t *testing.T, crews []*traffic.Crew, workers int) []served {
	t.Helper()
	var got []served
	for _, c := range crews {
		for range workers {
			var s served
			c.Next(&s)
			got = append(got, s)
		}
	}
	slices.SortFunc(got, func(a, b served) int { return int(int64(a.Token) - int64(b.Token)) })
	return got
}

// checkOrder fails if the waiters were not served in the order of the queue.
func checkOrder(t *testing.T, queue []string, got []served) {
	t.Helper()
	place := map[lockinfo.LeaseID]int{}
	for i, id := range queue {
		place[lockinfo.LeaseID(id)] = i + 1
	}
	last := 0
	for i, s := range got {
		at := place[s.LeaseID]
		if at == 0 {
			t.Fatalf("%s was served and had no place", s.LeaseID)
		}
		if at < last {
			t.Fatalf("%s was served as number %d, after %d: out of order", fmt.Sprint(s), i, last)
		}
		last = at
	}
}
