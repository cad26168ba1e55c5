package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A looker is an OnWait that notes what it is told, and when.
type looker struct {
	start time.Time
	mu    sync.Mutex // guards the rest
	told  []holdfast.WaitState
}

func (l *looker) onWait(s holdfast.WaitState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, s)
}

// all returns what l was told.
func (l *looker) all() []holdfast.WaitState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told)
}

// waits are options that l is told of.
func (l *looker) waits() *holdfast.AcquireOptions {
	l.start = time.Now()
	return &holdfast.AcquireOptions{OnWait: l.onWait}
}

// heard returns what l was told: the places, and whether the store answered.
func (l *looker) heard() (s string) {
	for _, w := range l.all() {
		s += fmt.Sprintf("%d ", w.Place)
		if w.Outage != nil {
			s += "outage "
		}
	}
	return s
}

// A waiter is told where it stands when its wait begins and each time that it gets
// on, and nothing when only time has passed.
func TestOnWaitTellsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", PID: 812}})
		first := mustAcquire(t, c, "a", nil)
		ahead := enqueue(t.Context(), c, "a", nil)
		var l looker
		last := enqueue(t.Context(), c, "a", l.waits())
		if len(l.all()) != 1 || l.all()[0].Place != 2 || l.all()[0].Holder.Host != "web-3" || l.all()[0].Name != "a" || l.all()[0].Waited != 0 {
			t.Fatalf("told %+v at the beginning", l.all())
		}
		time.Sleep(time.Minute) // some thirty refreshes
		if len(l.all()) != 1 {
			t.Errorf("told %d times while nothing happened: %+v", len(l.all()), l.all())
		}
		first.Release(t.Context())
		second := granted(t, ahead).lease
		time.Sleep(10 * time.Second)
		if got := l.heard(); got != "2 1 " || l.all()[1].Waited < time.Minute {
			t.Errorf("told of the places %s(%+v), want 2 and 1", got, l.all())
		}
		second.Release(t.Context())
		granted(t, last).lease.Release(t.Context())
		if len(l.all()) != 2 {
			t.Errorf("told of the end of the wait: %+v", l.all()[2:])
		}
	})
}

// A saying engine is told by and by what to answer.
type saying struct {
	*scripted
	mu sync.Mutex // guards held
}

func (s *saying) say(b driver.Blocker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = b
}

func (s *saying) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripted.Acquire(ctx, req)
}

func (s *saying) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripted.Refresh(ctx, reqs)
}

// What OnWait is told of the lease in the way is what the store says, later than
// when it was said.
func TestOnWaitTellsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &saying{scripted: &scripted{faulty: newFaulty()}}
		c := newClient(t, store, nil)
		held := driver.Blocker{Place: 1, Queue: 4, Holder: holdfast.Holder{Host: "web-3"}, Since: 3 * time.Hour, ExpiresIn: time.Hour}
		store.say(held)
		var l looker
		ctx, cancel := context.WithCancel(t.Context())
		done := enqueue(ctx, c, "a", l.waits())
		steps := []func(b *driver.Blocker){
			func(b *driver.Blocker) { b.Since += time.Hour },                          // no news
			func(b *driver.Blocker) { b.ExpiresIn += time.Hour },                      // no news: it was renewed
			func(b *driver.Blocker) { b.Queue++ },                                     // news
			func(b *driver.Blocker) { b.Since = time.Minute },                         // the same holder has got it anew
			func(b *driver.Blocker) { b.Holder.Labels = map[string]string{"a": "b"} }, // another one
			func(b *driver.Blocker) { b.Released = true },
			func(b *driver.Blocker) { b.Foreign = true },
		}
		want := 1
		for i, step := range steps {
			step(&held)
			store.say(held)
			time.Sleep(10 * time.Second)
			if i >= 2 {
				want++
			}
			if len(l.all()) != want {
				t.Fatalf("after step %d it was told %d times, want %d: %+v", i, len(l.all()), want, l.all())
			}
		}
		s := l.all()[len(l.all())-1]
		if s.Queue != 5 || s.Place != 1 || !s.Released || !s.Foreign || s.Since < time.Minute || s.Holder.Labels["a"] != "b" || s.ExpiresIn > 2*time.Hour {
			t.Errorf("told %+v", s)
		}
		cancel()
		wantErr(t, (<-done).err, context.Canceled)
	})
}

// An outage is told when it begins and when it ends, even if the store was not there
// at the beginning.
func TestOnWaitTellsOutage(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprint("from the beginning ", atOnce), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				release := foreign(t, engine, "a", time.Hour)
				dead := fail(driver.ErrUnavailable, "acquire", "refresh")
				want := "1 1 outage 1 "
				if atOnce {
					engine.set(dead, nil)
					want = "0 outage 1 "
				}
				var l looker
				opts := l.waits()
				opts.Wait = time.Hour
				done := enqueue(t.Context(), c, "a", opts)
				engine.set(dead, nil)
				time.Sleep(4500 * time.Millisecond) // less than the place lasts
				engine.heal()
				time.Sleep(20 * time.Second)
				if got := l.heard(); got != want {
					t.Errorf("told %q, want %q: %+v", got, want, l.all())
				}
				release()
				granted(t, done).lease.Release(t.Context())
			})
		})
	}
}

// Nobody is told of a wait that there is not.
func TestOnWaitWithoutWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		var l looker
		lease, err := c.Acquire(t.Context(), "a", l.waits())
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.TryAcquire(t.Context(), "a", l.waits())
		wantErr(t, err, holdfast.ErrHeld)
		lease.Release(t.Context())
		if len(l.all()) != 0 {
			t.Errorf("told %+v", l.all())
		}
	})
}

// A callback that panics, or ends its goroutine, leaves nothing behind, and Close does
// not wait for it.
func TestOnWaitPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		release := foreign(t, engine, "a", time.Hour)
		opts := &holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { panic("the screen is gone") }}
		func() {
			defer func() {
				if r := recover(); r != "the screen is gone" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = c.Acquire(t.Context(), "a", opts)
		}()
		synctest.Wait()
		release()
		nothingLeft(t, engine, "a")
	})
}

// While a callback takes its time the place is kept, and the lock may be granted
// meanwhile: it is a lease all the same.
func TestOnWaitIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		release := foreign(t, engine, "a", time.Hour)
		done := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { time.Sleep(20 * time.Second) }})
		time.AfterFunc(10*time.Second, release)
		l := granted(t, done).lease
		trusted(t, engine, l, time.Second, time.Minute)
		l.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// AcquireAll says for which of its locks it waits.
func TestOnWaitOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		time.AfterFunc(time.Second, foreign(t, engine, "a", time.Hour))
		time.AfterFunc(2*time.Second, foreign(t, engine, "b", time.Hour))
		var l looker
		ls, err := c.AcquireAll(t.Context(), []string{"b", "a"}, l.waits())
		if err != nil {
			t.Fatal(err)
		}
		ls.Release(t.Context())
		if len(l.all()) != 2 || l.all()[0].Name != "a" || l.all()[1].Name != "b" || l.all()[1].Waited != time.Second {
			t.Errorf("told %+v", l.all())
		}
	})
}
