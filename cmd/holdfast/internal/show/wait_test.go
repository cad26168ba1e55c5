package show

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// hold acquires a lock, which lasts until release or its expiry.
func hold(t *testing.T, store *mem.Engine, name string, ttl time.Duration) (release func(keepFor time.Duration)) {
	t.Helper()
	id := lockinfo.NewLeaseID()
	r, err := store.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: id, TTL: ttl})
	if err != nil || r.Outcome != driver.Granted {
		t.Fatalf("%+v, %v", r, err)
	}
	return func(keepFor time.Duration) {
		if err := store.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: id, KeepFor: keepFor}); err != nil {
			t.Error(err)
		}
	}
}

// looking returns a function that inspects names of a store, and counts its calls.
func looking(store *mem.Engine, looks *int, names ...string) func(context.Context) ([]lockinfo.LockState, error) {
	return func(ctx context.Context) (locks []lockinfo.LockState, err error) {
		*looks++
		for _, name := range names {
			lock, err := store.Inspect(ctx, name)
			if err != nil {
				return nil, err
			}
			locks = append(locks, lock)
		}
		return locks, nil
	}
}

// TestFree checks that a wait ends soon after the last of the locks is free, and acquires none of
// them.
func TestFree(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Millisecond, time.Second, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store, looks := mem.New(nil), 0
			release := hold(t, store, "a", 2*time.Hour)
			start := time.Now()
			if wait > 0 {
				time.AfterFunc(wait, func() { release(0) })
			} else {
				release(0)
			}
			locks, free, err := Wait{Look: looking(store, &looks, "a", "b")}.Free(t.Context())
			late := time.Since(start) - wait
			if err != nil || !free || len(locks) != 2 {
				t.Fatalf("%+v, free %t, %v", locks, free, err)
			}
			if most := min(max(wait/10, shortestLook), longestLook) * 5 / 4; wait == 0 && late != 0 || late < 0 || late > most {
				t.Errorf("after a wait of %s it noticed %s late, want %s at most", wait, late, most)
			}
			if most := 40 + int(wait/longestLook*4/3); looks > most {
				t.Errorf("%d looks in %s, want %d at most", looks, wait, most)
			}
			for _, lock := range locks {
				if lock.LastToken > 0 && lock.Name == "b" || IsTaken(lock) {
					t.Errorf("it is in %+v", lock)
				}
			}
			hold(t, store, "a", time.Second) // the lock is free
		})
	}
}

// TestEnds checks that a wait ends in time when a lease expires without a renewal, and when a name
// is no longer kept closed.
func TestEnds(t *testing.T) {
	for what, keepFor := range map[string]time.Duration{"expiry": 0, "kept closed": 100 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store, looks := mem.New(nil), 0
			release := hold(t, store, "a", 100*time.Second)
			if keepFor > 0 {
				release(keepFor)
			}
			start := time.Now()
			_, free, err := Wait{Look: looking(store, &looks, "a")}.Free(t.Context())
			const most = time.Duration((1+jitter)*float64(longestLook))/4 + slack
			if late := time.Since(start) - 100*time.Second; err != nil || !free || late > most {
				t.Errorf("%s: free %t, %v, noticed %s late", what, free, err, late)
			}
		})
	}
}

// TestUntil checks that a wait gives up in time, and returns which lock is held.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, looks := mem.New(nil), 0
		hold(t, store, "a", time.Hour)
		for _, limit := range []time.Duration{0, time.Millisecond, 10 * time.Second} {
			start := time.Now()
			locks, free, err := Wait{Look: looking(store, &looks, "b", "a"), Until: start.Add(limit)}.Free(t.Context())
			if took := time.Since(start); err != nil || free || took != limit || len(locks) != 2 || !IsTaken(locks[1]) {
				t.Errorf("%+v, free %t, %v, after %s, want %s", locks, free, err, took, limit)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, free, err := (Wait{Look: looking(store, &looks, "a")}).Free(ctx); free || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: free %t, %v", free, err)
		}
	})
}

// TestOutage checks that an unavailable store does not end a wait that has begun, but ends a wait
// that cannot begin.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := fmt.Errorf("%w: a test", driver.ErrUnavailable)
		store, looks, told := mem.New(nil), 0, 0
		release := hold(t, store, "a", time.Hour)
		var broken atomic.Bool
		look := func(ctx context.Context) ([]lockinfo.LockState, error) {
			if broken.Load() {
				return nil, away
			}
			return looking(store, &looks, "a")(ctx)
		}
		time.AfterFunc(10*time.Second, func() { broken.Store(true) })
		time.AfterFunc(20*time.Second, func() { release(0) })
		time.AfterFunc(30*time.Second, func() { broken.Store(false) })
		start := time.Now()
		w := Wait{Look: look, Tell: func(_ []lockinfo.LockState, err error) {
			if err != nil {
				told++
			}
		}}
		if _, free, err := w.Free(t.Context()); err != nil || !free || time.Since(start) < 30*time.Second || told == 0 {
			t.Errorf("free %t, %v, after %s, reported the outage %d times", free, err, time.Since(start), told)
		}
		broken.Store(true)
		if _, free, err := w.Free(t.Context()); free || !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("without an answer: free %t, %v", free, err)
		}
		start, w.Until = time.Now(), time.Now().Add(5*time.Second)
		if _, free, err := w.Free(t.Context()); free || !errors.Is(err, driver.ErrUnavailable) || time.Since(start) != 5*time.Second {
			t.Errorf("with a limit: free %t, %v, after %s", free, err, time.Since(start))
		}
		w.Look = func(ctx context.Context) ([]lockinfo.LockState, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		w.Look, w.Until = silentAfter(w.Look), time.Now().Add(5*time.Second)
		if _, free, err := w.Free(t.Context()); free || !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("a store that hangs: free %t, %v", free, err)
		}
		for _, permanent := range []error{driver.ErrPermission, fmt.Errorf("%w: %w", driver.ErrUnavailable, driver.ErrClosed)} {
			start = time.Now()
			w = Wait{Look: func(context.Context) ([]lockinfo.LockState, error) { return nil, permanent }, Until: start.Add(time.Hour)}
			if _, _, err := w.Free(t.Context()); !errors.Is(err, permanent) || time.Since(start) > 0 {
				t.Errorf("%v: %v after %s", permanent, err, time.Since(start))
			}
		}
	})
}

// silentAfter returns a function that succeeds once, and then calls look.
func silentAfter(look func(context.Context) ([]lockinfo.LockState, error)) func(context.Context) ([]lockinfo.LockState, error) {
	first := true
	return func(ctx context.Context) ([]lockinfo.LockState, error) {
		if first {
			first = false
			return []lockinfo.LockState{{Name: "a", QueueLength: 1}}, nil
		}
		return look(ctx)
	}
}

// TestManyAskSeldom checks that a thousand long waits look at the store about 500 times a second,
// and not all at once.
func TestManyAskSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, second = 1000, 20 // slots of 50 ms
		store := mem.New(nil)
		hold(t, store, "a", 24*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		slots := make([]int, 60*second)
		asked := make(chan int)
		for range waiters {
			go func() { // ends with ctx
				looks := 0
				look := looking(store, &looks, "a")
				_, _, _ = Wait{Look: func(ctx context.Context) ([]lockinfo.LockState, error) {
					asked <- int(time.Since(start) / (time.Second / second))
					return look(ctx)
				}}.Free(ctx)
			}()
		}
		for over := false; !over; {
			slot := <-asked
			if over = slot >= len(slots); !over {
				slots[slot]++
			}
		}
		cancel()
		go func() {
			for range asked {
			}
		}()
		synctest.Wait()
		close(asked)
		all, most := 0, 0
		for _, n := range slots[len(slots)/2:] { // of waits that have lasted for half a minute
			all, most = all+n, max(most, n)
		}
		if rate := all / 30; rate > 600 || rate < 300 {
			t.Errorf("%d looks a second, want about 500", rate)
		}
		if most > 3*all/(30*second) {
			t.Errorf("up to %d looks in 50 ms, want about %d", most, all/(30*second))
		}
	})
}
