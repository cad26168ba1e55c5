package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// heard collects events, for one test in a bubble.
type heard struct {
	mu     sync.Mutex
	events []holdfast.Event
}

func (h *heard) observe(e holdfast.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// take returns what was heard since the last take.
func (h *heard) take() []holdfast.Event {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.events = nil }()
	return h.events
}

func kindsOf(events []holdfast.Event) (kinds []holdfast.EventKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// wantKinds takes the events that were heard.
func (h *heard) wantKinds(t *testing.T, want ...holdfast.EventKind) []holdfast.Event {
	t.Helper()
	events := h.take()
	if fmt.Sprint(kindsOf(events)) != fmt.Sprint(want) {
		t.Fatalf("events %v, want %v", kindsOf(events), want)
	}
	return events
}

// What the events of a lock have in them, from the wait to the break.
func TestEventFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type spanKey struct{}
		ctx := context.WithValue(t.Context(), spanKey{}, "span")
		store, h := memlock.New(), &heard{}
		other := newClient(t, store, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3"}})
		c := newClient(t, store, &holdfast.Options{Observer: h.observe})
		held, second := mustAcquire(t, other, "a", nil), enqueue(t.Context(), other, "a", nil)
		waiter := enqueue(ctx, c, "a", nil)
		time.Sleep(3 * time.Second)
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := granted(t, second).lease
		time.Sleep(7 * time.Second)
		if err := before.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l := granted(t, waiter).lease
		events := h.wantKinds(t, holdfast.Waiting, holdfast.PlaceChanged, holdfast.HandedOver, holdfast.Acquired)
		for i, e := range events {
			if e.Name != "a" || e.Key != events[0].Key || e.LeaseID != l.ID() || e.Mode != holdfast.Exclusive || e.Attempt != 1 || e.Holder.Host != "web-3" || e.Context.Value(spanKey{}) != "span" {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		waits, moved, got := events[0], events[1], events[3]
		if waits.Place != 2 || waits.Queue != 2 || !errors.Is(waits.Err, holdfast.ErrHeld) || !waits.BeginsWait() {
			t.Errorf("%s: place %d of %d, %v", waits.Kind, waits.Place, waits.Queue, waits.Err)
		}
		if moved.Place != 1 || moved.Queue != 1 {
			t.Errorf("%s: place %d of %d", moved.Kind, moved.Place, moved.Queue)
		}
		if got.Waited != 10*time.Second || !got.EndsWait() || !got.BeginsHold() || got.Token != l.Token() || got.Remaining <= 0 || got.Remaining > 5*time.Second {
			t.Errorf("%s: waited %s, remaining %s, %+v", got.Kind, got.Waited, got.Remaining, got)
		}
		time.Sleep(time.Second)
		renewed := h.wantKinds(t, holdfast.Renewed)[0]
		if renewed.Remaining < 29*time.Second || renewed.Key != got.Key || renewed.Context.Value(spanKey{}) != "span" {
			t.Errorf("%s: remaining %s, %+v", renewed.Kind, renewed.Remaining, renewed)
		}
		if _, err := other.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"}); err != nil {
			t.Fatal(err)
		}
		for _, e := range h.wantKinds(t, holdfast.LeaseBroken, holdfast.Lost) {
			if e.Author != "ada" || e.Reason != "its node is gone" || !errors.Is(e.Err, holdfast.ErrBroken) || e.Held != time.Second || e.EndsHold() != (e.Kind == holdfast.Lost) {
				t.Errorf("%s: %+v", e.Kind, e)
			}
		}
		l.Release(t.Context())
		h.wantKinds(t)
	})
}

// A replay of do-once work is not a refusal, and one in progress is one that says so.
func TestReplayIsNotARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		c := newClient(t, memlock.New(), &holdfast.Options{Observer: h.observe})
		work := func(context.Context, *holdfast.Lease) ([]byte, error) {
			time.Sleep(time.Second)
			return nil, nil
		}
		go c.Once(t.Context(), "k", nil, work)
		synctest.Wait()
		_, err := c.Once(t.Context(), "k", nil, work)
		wantErr(t, err, holdfast.ErrInProgress)
		refused := h.wantKinds(t, holdfast.Acquired, holdfast.Refused)[1]
		if !errors.Is(refused.Err, holdfast.ErrInProgress) || !refused.Once || refused.EndsWait() {
			t.Errorf("refused: %+v", refused)
		}
		result, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Await: true}, work)
		if err != nil || !result.Replayed {
			t.Fatalf("%+v, %v", result, err)
		}
		var replayed holdfast.Event
		for _, e := range h.take() {
			if e.Kind == holdfast.Refused {
				t.Errorf("refused: %v", e.Err)
			}
			if e.Kind == holdfast.OnceReplayed {
				replayed = e
			}
		}
		if replayed.Token != result.Token || !replayed.Once || !replayed.EndsWait() || replayed.Err != nil {
			t.Errorf("replayed: %+v", replayed)
		}
	})
}

// Why a run has no result.
func TestRunFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errWork, h := errors.New("the disk is full"), &heard{}
		c := newClient(t, memlock.New(), &holdfast.Options{Observer: h.observe})
		c.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, errWork })
		if e := h.wantKinds(t, holdfast.Acquired, holdfast.OnceFailed, holdfast.Released)[1]; !errors.Is(e.Err, errWork) {
			t.Errorf("%v", e.Err)
		}
		c.Once(t.Context(), "k", &holdfast.OnceOptions{MaxResult: 1}, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("long"), nil })
		if e := h.wantKinds(t, holdfast.Acquired, holdfast.OnceFailed, holdfast.Released)[1]; !errors.Is(e.Err, holdfast.ErrInvalid) {
			t.Errorf("%v", e.Err)
		}
	})
}

// A logBuffer is where a test's log goes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.text.String(), "\n"), "\n")
}

// A loss and a clean-up that failed are logged, one line each, without an Observer:
// which name, why, and what to do; never a lease ID.
func TestLossesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log := newFaulty(), &logBuffer{}
		c := newClient(t, engine, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		lost, kept := mustAcquire(t, c, "orders/42", nil), mustAcquire(t, c, "orders/43", nil)
		takeAway(t, engine.Engine, "orders/42")
		wantErr(t, lost.Verify(t.Context()), holdfast.ErrLost)
		wantErr(t, lost.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		engine.set(fail(driver.ErrPermission, "release"), nil)
		wantErr(t, kept.Release(t.Context()), holdfast.ErrPermission)
		synctest.Wait()
		lines := log.lines()
		for i, want := range [][]string{
			{"level=WARN", "name=orders/42", "not live", "stop what it protects"},
			{"level=WARN", "name=orders/43", "not permitted", "stays closed"},
		} {
			for _, part := range want {
				if i >= len(lines) || !strings.Contains(lines[i], part) {
					t.Errorf("line %d of %q, want %q in it", i, lines, part)
				}
			}
		}
		if len(lines) != 2 || strings.Contains(strings.Join(lines, ""), string(lost.ID())) {
			t.Errorf("logged: %q", lines)
		}
		engine.heal()
	})
}

// Without a Logger it is the one of the program, as it is then.
func TestDefaultLogger(t *testing.T) {
	was := slog.Default()
	defer slog.SetDefault(was)
	log := &logBuffer{}
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
		l := mustAcquire(t, c, "a", nil)
		takeAway(t, engine.Engine, "a")
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		if err := c.Close(t.Context()); err != nil { // which waits for the log, too
			t.Error(err)
		}
	})
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "a lease is lost") {
		t.Errorf("logged: %q", lines)
	}
}
