package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// scales returns the workloads of sizes that are rare and take long. They run only with -scale,
// which runs no others.
func scales() []workload {
	all := []workload{
		held(1_000_000, time.Minute, peer.Keeps|peer.Batches),
		queued(1, 10_000), queued(100_000, 1),
	}
	for i := range all {
		all[i].scale = true
	}
	return all
}

// queued measures very many waiters for held names: they join, wait, and then each has the lock
// for a moment.
func queued(names, each int) workload {
	n := names * each
	return workload{
		name:  fmt.Sprintf("queued-%dx%d", names, each),
		title: fmt.Sprintf("%s names with %s waiters each", report.Figure(float64(names)), report.Figure(float64(each))),
		base:  own,
		needs: peer.Takes | peer.Waits | peer.Keeps | peer.Batches,
		ttl:   30 * time.Second,
		metrics: []report.Metric{
			{Name: "joins", Title: "come, a second", Better: report.More},
			{Name: "join-server", Title: "server CPU for each", Unit: "µs", Better: report.Less},
			{Name: "memory", Title: "client's memory for each", Unit: "kB", Better: report.Less},
			{Name: "rate", Title: "scripts a second while all wait", Better: report.Less},
			{Name: "server", Title: "server then, of a core", Unit: "%", Better: report.Less},
			{Name: "client", Title: "client then", Unit: "%", Better: report.Less},
			{Name: "longest", Title: "longest script then", Unit: "ms", Better: report.Less},
			{Name: "turns", Title: "turns, a second", Better: report.More},
			{Name: "turn-server", Title: "server CPU for each", Unit: "µs", Better: report.Less},
		},
		run: func(ctx context.Context, t *trial) (sample, error) {
			if _, ok := t.store.(*redisStore); !ok {
				return nil, errors.New("this is about Redis")
			}
			q := &multitude{trial: t, n: int64(n), sample: sample{}}
			return q.sample, q.run(ctx, names)
		},
	}
}

// A multitude is the waiters of queued.
type multitude struct {
	*trial
	n      int64
	sample sample

	holders []peer.Held
	done    atomic.Int64 // number of waiters that had the lock
	all     sync.WaitGroup
	failed  atomic.Pointer[error]
}

func (q *multitude) run(ctx context.Context, names int) error {
	holder, err := q.open(ctx)
	if err != nil {
		return err
	}
	waiter, err := q.open(ctx)
	if err != nil {
		return err
	}
	if q.holders, err = take(ctx, holder, q.name, names); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer q.all.Wait()
	defer cancel()
	if err := q.join(ctx, waiter); err != nil {
		return err
	}
	if err := q.stay(ctx); err != nil {
		return err
	}
	return q.pass(ctx)
}

// rush is how many waiters join at the same time. More would only wait for the client.
const rush = 1000

// join makes all waiters join, and returns when each has requested a place.
func (q *multitude) join(ctx context.Context, client peer.Client) error {
	m, err := measure(q.store)
	if err != nil {
		return err
	}
	before := heap()
	for i := int64(0); i < q.n; {
		for end := min(i+rush, q.n); i < end; i++ {
			name := oneOf(q.name, i%int64(len(q.holders))+1)
			q.all.Go(func() { q.wait(ctx, client, name) })
		}
		for asked := int64(0); asked < i; { // each sends one script
			sleep(ctx, 5*time.Millisecond)
			now, err := q.store.scripts()
			if err = cmp.Or(err, q.broken(ctx)); err != nil {
				return err
			}
			asked = now.calls - m.scripts.calls
		}
	}
	u, err := m.taken()
	q.sample["joins"] = float64(q.n) / u.wall.Seconds()
	q.sample["join-server"] = per(u.server, q.n)
	q.sample["memory"] = (float64(heap()) - float64(before)) / 1000 / float64(q.n)
	return err
}

// wait waits for a lock and releases it.
func (q *multitude) wait(ctx context.Context, client peer.Client, name string) {
	held, err := client.Wait(ctx, name)
	if err == nil {
		err = held.Release(ctx)
	}
	if err != nil {
		q.failed.Store(&err)
		return
	}
	q.done.Add(1)
}

// stay measures the cost of waiting.
func (q *multitude) stay(ctx context.Context) error {
	sleep(ctx, q.ttl/2) // until refreshes are evenly spread
	s, _, err := q.idle(ctx, q.ttl)
	maps.Copy(q.sample, s)
	return cmp.Or(err, q.broken(ctx))
}

// pass releases the held locks, and lets all waiters have their turn.
func (q *multitude) pass(ctx context.Context) error {
	m, err := measure(q.store)
	if err != nil {
		return err
	}
	var next atomic.Int64
	for range takers {
		q.all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(q.holders)); i = next.Add(1) - 1 {
				if err := q.holders[i].Release(ctx); err != nil {
					q.failed.Store(&err)
				}
			}
		})
	}
	for q.done.Load() < q.n {
		if err := q.broken(ctx); err != nil {
			return err
		}
		sleep(ctx, 10*time.Millisecond)
	}
	u, err := m.taken()
	q.sample["turns"] = float64(q.n) / u.wall.Seconds()
	q.sample["turn-server"] = per(u.server, q.n)
	return err
}

// broken returns why the measurement cannot continue, or nil.
func (q *multitude) broken(ctx context.Context) error {
	if err := q.failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}
