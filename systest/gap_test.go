package systest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestGapsCostLittle compares hand-overs with and without the moments in which a contended lock is
// left free for other libraries, although there are no such clients. It measures time and therefore
// runs only in a soak. Tests of package redislock check that the moments are rare and short.
func TestGapsCostLittle(t *testing.T) {
	if !soak.Long() {
		return
	}
	const rounds, span = 31, 500 * time.Millisecond
	s := newStore(t)
	for _, workers := range []int{4, 32} {
		var ratios []float64
		for i := range rounds {
			var turns [2]int64 // with gaps, and without
			for n := range turns {
				which := (n + i) % 2 // neither always goes first
				turns[which] = handOvers(t, s, workers, span, which == 1)
			}
			ratios = append(ratios, float64(turns[0])/float64(turns[1]))
		}
		slices.Sort(ratios)
		median := ratios[rounds/2]
		report.Row(t, "a contended lock is left free for others, and there are none", "99 % of the hand-overs",
			"%d waiters: %.1f %% (%d rounds, quartiles %.1f and %.1f)", workers, 100*median, rounds, 100*ratios[rounds/4], 100*ratios[3*rounds/4])
		if median < 0.97 {
			t.Errorf("%d waiters: %.3f of the hand-overs", workers, median)
		}
	}
}

// handOvers counts the turns of workers with 1 ms of work within span.
func handOvers(t *testing.T, s *store, workers int, span time.Duration, alone bool) int64 {
	t.Helper()
	pool, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.server.Addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	engine, err := redislock.New(pool, &redislock.Options{NoForeignClients: alone})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	client := newClient(t, engine, nil)
	defer closeClient(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var n atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				lease, err := client.Acquire(ctx, "gaps", nil)
				if err != nil {
					return
				}
				n.Add(1)
				time.Sleep(time.Millisecond)
				_ = lease.Release(context.WithoutCancel(ctx)) // so that the next round finds it free
			}
		})
	}
	wg.Wait()
	return n.Load()
}
