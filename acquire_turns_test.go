package holdfast_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// distant returns an engine without a queue on a store of others, this far away
// from it.
func distant(store *faulty, away time.Duration) plain {
	f := newFaultyOn(store.Engine)
	f.set(delay(away), delay(away))
	return plain{f}
}

// A runner is one worker that takes turns at a lock.
type runner struct {
	client *holdfast.Client
	turns  int
}

// race lets the runners take turns for a time, each for up to work.
func race(t *testing.T, runners []*runner, work, length time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for i, r := range runners {
		random := rand.New(rand.NewPCG(uint64(i), 11))
		all.Go(func() {
			for {
				l, err := r.client.Acquire(ctx, "a", nil)
				if err != nil {
					return
				}
				r.turns++
				time.Sleep(time.Duration(random.Int64N(int64(work))) + 1)
				l.Release(t.Context())
			}
		})
	}
	all.Wait()
}

// shares fails t unless each runner had that many turns of a hundred, and the
// lock was in use for that part of the time.
func shares(t *testing.T, runners []*runner, least int, work, length time.Duration, used float64) {
	t.Helper()
	turns, total := []int{}, 0
	for _, r := range runners {
		turns, total = append(turns, r.turns), total+r.turns
	}
	if slices.Min(turns)*100 < total*least {
		t.Errorf("turns: %d; want %d %% for each at least", turns, least)
	}
	if part := float64(total) * float64(work/2) / float64(length); part < used {
		t.Errorf("turns: %d; the lock was in use for %.2f of the time, want %.2f", turns, part, used)
	}
}

// INVARIANT I7: where those who wait can only try again, whoever gives the lock
// back lets them have their share, near or far, and whether it knows of them or
// not: for ten seconds it may not.
func TestTurnsWithoutQueue(t *testing.T) {
	for _, c := range []struct {
		work, step, length time.Duration
		least              int
		used               float64
	}{
		{2 * time.Millisecond, time.Millisecond / 2, time.Minute, 8, 0.25},
		{20 * time.Millisecond, 5 * time.Millisecond, 3 * time.Minute, 8, 0.25},
		{400 * time.Millisecond, time.Millisecond / 2, 3 * time.Minute, 12, 0.6},
		{20 * time.Second, time.Millisecond / 2, 20 * time.Minute, 12, 0.9},
	} {
		t.Run(fmt.Sprintf("%s of work, %s apart", c.work, c.step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, runners := newFaulty(), []*runner{}
				for i := range 3 {
					away := time.Duration(i)*c.step + 100*time.Microsecond
					runners = append(runners, &runner{client: newClient(t, distant(store, away), nil)})
				}
				race(t, runners, c.work, c.length)
				shares(t, runners, c.least, c.work, c.length, c.used)
			})
		})
	}
}

// The goroutines of one client take turns, with one another and with others.
func TestTurnsOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work, length = 100 * time.Millisecond, time.Minute
		store := newFaulty()
		near := newClient(t, distant(store, 100*time.Microsecond), nil)
		far := newClient(t, distant(store, time.Millisecond), nil)
		runners := []*runner{{client: near}, {client: near}, {client: near}, {client: far}}
		race(t, runners, work, length)
		shares(t, runners, 8, work, length, 0.5)
	})
}

// turn takes the lock and gives it back after work, and returns how long it
// waited.
func turn(t *testing.T, c *holdfast.Client, work time.Duration, opts *holdfast.AcquireOptions) time.Duration {
	t.Helper()
	start := time.Now()
	l, err := c.Acquire(t.Context(), "a", opts)
	if err != nil {
		t.Fatal(err)
	}
	waited := time.Since(start)
	time.Sleep(work)
	l.Release(t.Context())
	return waited
}

// contended returns a client that was refused the lock a moment ago, and then
// had it for 100 ms. So the next turn would begin with a pause.
func contended(t *testing.T) *holdfast.Client {
	engine := newFaulty()
	c := newClient(t, plain{engine}, nil)
	time.AfterFunc(50*time.Millisecond, foreign(t, engine, "a", time.Hour))
	turn(t, c, 100*time.Millisecond, nil)
	return c
}

// Whoever is alone does not pause, nor send more, for ten seconds; then for a
// fortieth of the time.
func TestTurnsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		for i := range 100 {
			if waited := turn(t, c, 99*time.Millisecond, nil); waited > 0 {
				t.Fatalf("turn %d began with a pause of %s", i, waited)
			}
		}
		if got := fmt.Sprint(engine.calls); got != "map[acquire:100 release:100]" {
			t.Errorf("requests = %s", got)
		}
		var waited time.Duration
		for range 1000 {
			waited += turn(t, c, 100*time.Millisecond, nil)
		}
		if waited == 0 || waited > 2500*time.Millisecond {
			t.Errorf("pauses of %s in 100 s; want some, and 2.5 s at most", waited)
		}
		for range 10 { // who lets others have a chance leaves it at that
			time.Sleep(300 * time.Millisecond)
			if waited := turn(t, c, 5*time.Second, nil); waited > 0 {
				t.Errorf("a pause of %s, 300 ms after the release", waited)
			}
		}
	})
}

// Pauses end when those for whom they are have gone.
func TestTurnsAfterRivalsHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contended(t)
		var waited time.Duration
		for range 100 {
			waited += turn(t, c, 30*time.Millisecond, nil)
		}
		if waited < 100*time.Millisecond || waited > 1250*time.Millisecond {
			t.Errorf("pauses of %s in all; want 100 ms to 1.25 s", waited)
		}
		if waited := turn(t, c, 0, nil); waited > 0 {
			t.Errorf("still a pause, of %s", waited)
		}
	})
}

// Only who can wait pauses, and for no longer than that.
func TestTurnsPauseWithinTheWait(t *testing.T) {
	for what, check := range map[string]func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration{
		"it pauses": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			return max(0, 50*time.Millisecond-turn(t, c, 0, nil))
		},
		"TryAcquire": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			mustAcquire(t, c, "a", nil).Release(context.Background())
			return time.Since(start)
		},
		"a short wait": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			return max(0, turn(t, c, 0, &holdfast.AcquireOptions{Wait: 10 * time.Millisecond})-5*time.Millisecond)
		},
		"a cancelled context": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			_, err := c.Acquire(ctx, "a", nil)
			wantErr(t, err, context.Canceled)
			return time.Since(start) - time.Millisecond
		},
		"two seconds later": func(t *testing.T, c *holdfast.Client, start time.Time) time.Duration {
			time.Sleep(2 * time.Second)
			turn(t, c, 50*time.Millisecond, nil)
			return turn(t, c, 0, nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := contended(t)
				if over := check(t, c, time.Now()); over != 0 {
					t.Errorf("%s too much, or too little", over)
				}
			})
		})
	}
}

// INVARIANT I11: what a client remembers of names is bounded.
func TestTurnsMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		for i := range 3000 {
			l, err := c.Acquire(t.Context(), fmt.Sprint("name-", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			l.Release(t.Context())
		}
		if n := holdfast.RecentTurns(c); n == 0 || n > 256 {
			t.Errorf("%d names are remembered, want 1 to 256", n)
		}
	})
}

// To be fair costs no allocation: what waits allocates as much as what tries.
func TestTurnsAllocateNothing(t *testing.T) {
	c := newClient(t, plain{newFaulty()}, nil)
	measure := func(acquire func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error)) float64 {
		return testing.AllocsPerRun(1000, func() {
			l, err := acquire(context.Background(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			l.Release(context.Background())
		})
	}
	if tries, waits := measure(c.TryAcquire), measure(c.Acquire); waits > tries {
		t.Errorf("%.1f allocations with waiting, %.1f without", waits, tries)
	}
}
