package bench

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A watched engine records the names that it is asked to lock, and calls then at request number
// after.
type watched struct {
	driver.Forward
	mu    sync.Mutex // guards the rest
	names map[string]bool
	after int
	then  func()
}

func (w *watched) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	w.mu.Lock()
	w.names[req.Name] = true
	if w.after--; w.after == 0 {
		w.then()
	}
	w.mu.Unlock()
	return w.Forward.Acquire(ctx, req)
}

func watch(store driver.Engine) *watched {
	return &watched{Forward: driver.Forward{Engine: store}, names: map[string]bool{}}
}

// leaves fails t if anything is held or waited for.
func leaves(t *testing.T, store *mem.Engine) {
	t.Helper()
	for lock, err := range store.List(t.Context(), "") {
		t.Errorf("left behind: %+v, %v", lock, err)
	}
}

// TestRun checks that a run measures everything, under names of its own, and leaves nothing.
func TestRun(t *testing.T) {
	store := mem.New(nil)
	engine := watch(store)
	r, err := Run(t.Context(), engine, store, 480*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Load) != 3 {
		t.Fatalf("loads %+v, want those of 1, 16 and 256", r.Load)
	}
	check := func(what string, l Latency, least int) {
		t.Helper()
		if l.Count < least || l.P50 > l.P95 || l.P95 > l.P99 {
			t.Errorf("%s: %+v", what, l)
		}
	}
	for i, n := range []int{1, 16, 256} {
		at := r.Load[i]
		if at.Workers != n || at.PerS == 0 || at.Failed != 0 {
			t.Errorf("load of %d: %+v", n, at)
		}
		check("acquire", at.Acquire, n)
		check("release", at.Release, n)
		check("pair", at.Pair, n)
	}
	check("hand-over", r.HandOver, 1)
	if len(engine.names) != 256 {
		t.Errorf("%d names, want 256", len(engine.names))
	}
	var prefix string
	for name := range engine.names {
		run, _, _ := strings.Cut(name, "/")
		if prefix = run; !strings.HasPrefix(name, Prefix) {
			t.Errorf("it has locked %q", name)
		}
	}
	for name := range engine.names {
		if !strings.HasPrefix(name, prefix+"/") {
			t.Errorf("it has locked %q and %s/…", name, prefix)
		}
	}
	leaves(t, store)
}

// TestInterrupted ends the run at many points. Nothing must be left, and the error must be the
// cause of the end.
func TestInterrupted(t *testing.T) {
	why := errors.New("by a test")
	for _, after := range []int{1, 2, 10, 100, 500} {
		store := mem.New(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		engine := watch(store)
		engine.after, engine.then = after, func() { cancel(why) }
		if _, err := Run(ctx, engine, engine, 320*time.Millisecond); !errors.Is(err, why) {
			t.Errorf("after %d requests: %v, want the cause of the end", after, err)
		}
		leaves(t, store)
	}
	store := mem.New(nil)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 280*time.Millisecond, why) // during the hand-overs
	defer cancel()
	if _, err := Run(ctx, store, store, 320*time.Millisecond); !errors.Is(err, why) {
		t.Errorf("at its end: %v, want the cause of the end", err)
	}
	leaves(t, store)
}

// TestTooSlow checks that a run that ends before all is measured returns what it has measured.
func TestTooSlow(t *testing.T) {
	store := mem.New(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond) // while many work, or before the hand-overs
	defer cancel()
	r, err := Run(ctx, store, store, 400*time.Millisecond)
	if err == nil || len(r.Load) == 0 || r.Load[0].Pair.Count == 0 || r.HandOver.Count != 0 {
		t.Errorf("%v, %+v: want an error, and the load of one at least", err, r)
	}
	leaves(t, store)
}

func TestLatency(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i)*time.Microsecond)
	}
	if got, want := latencyOf(times), (Latency{Count: 200, P50: 100, P95: 190, P99: 198}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := latencyOf(times[:1]), (Latency{Count: 1, P50: 1, P95: 1, P99: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := latencyOf(nil); got != (Latency{}) {
		t.Errorf("of none: %+v", got)
	}
}
