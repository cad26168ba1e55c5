package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestSlowObserverDelaysNoLoss checks that a slow Observer delays no loss, however the client
// detects it. INVARIANT I3.
func TestSlowObserverDelaysNoLoss(t *testing.T) {
	lost := map[string]func(t *testing.T, engine *faulty, l []*holdfast.Lease) (at time.Time){
		"at the deadline": func(t *testing.T, engine *faulty, l []*holdfast.Lease) time.Time {
			engine.set(fail(errLink, "extend"), nil)
			return l[0].Deadline()
		},
		"in one batch": func(t *testing.T, engine *faulty, l []*holdfast.Lease) time.Time {
			for i := range l {
				takeAway(t, engine.Engine, l[i].Name())
			}
			return time.Now().Add(5 * time.Second)
		},
		"by Extend": func(t *testing.T, engine *faulty, l []*holdfast.Lease) time.Time {
			for i := range l {
				takeAway(t, engine.Engine, l[i].Name())
				wantErr(t, l[i].Extend(t.Context(), time.Minute), holdfast.ErrLost)
			}
			return time.Now()
		},
		"by Verify": func(t *testing.T, engine *faulty, l []*holdfast.Lease) time.Time {
			for i := range l {
				takeAway(t, engine.Engine, l[i].Name())
				wantErr(t, l[i].Verify(t.Context()), holdfast.ErrLost)
			}
			return time.Now()
		},
	}
	for way, lose := range lost {
		runInBubble(t, way, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
				if e.Kind != holdfast.Acquired {
					time.Sleep(10 * time.Millisecond)
				}
			}})
			var leases []*holdfast.Lease
			for i := range 100 {
				leases = append(leases, mustAcquire(t, c, fmt.Sprint(i), nil))
			}
			at := lose(t, engine, leases)
			for _, l := range leases {
				<-l.Context().Done()
			}
			late := time.Since(at)
			expect(t, late <= 0, "the last of 100 contexts ended %s late", late)
		})
	}
}

// TestStuckObserverDelaysNoRenewal checks that an Observer that does not return delays neither
// renewals nor losses.
func TestStuckObserverDelaysNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		free := make(chan struct{})
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind != holdfast.Acquired {
				<-free
			}
		}})
		l := mustAcquire(t, c, "a", nil)
		time.Sleep(20 * time.Second)
		engine.set(fail(errLink, "extend"), nil)
		time.Sleep(10 * time.Second)
		engine.heal()
		time.Sleep(time.Minute)
		expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
		takeAway(t, engine.Engine, "a")
		time.Sleep(5 * time.Second)
		expect(t, !l.Valid(), "the loss is unknown 5 s after it")
		close(free)
	})
}

// TestSlowObserverHearsOrder checks that even a slow Observer receives the events of a lease in
// order, with none after the end.
func TestSlowObserverHearsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		heard := map[string][]holdfast.EventKind{}
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			mu.Lock()
			heard[e.Name] = append(heard[e.Name], e.Kind)
			mu.Unlock()
			if e.Kind == holdfast.Renewed {
				time.Sleep(100 * time.Millisecond)
			}
		}})
		var leases []*holdfast.Lease
		for i := range 50 {
			leases = append(leases, mustAcquire(t, c, fmt.Sprint(i), nil))
		}
		time.Sleep(6 * time.Second) // the Observer has received the renewals of the first ten
		for i, l := range leases {
			if i%2 == 0 {
				takeAway(t, engine.Engine, l.Name())
				wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
			}
			l.Release(t.Context())
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i, l := range leases {
			kinds := heard[l.Name()]
			end := holdfast.Released
			if i%2 == 0 {
				end = holdfast.Lost
			}
			expect(t, kinds[0] == holdfast.Acquired && slices.Index(kinds, end) == len(kinds)-1, "lease %d: events = %v, want %s at last", i, kinds, end)
		}
	})
}

// TestPanickingObserver checks that an Observer that always panics loses its events, and that a
// warning is logged.
func TestPanickingObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log := newFaulty(), &logBuffer{}
		told := 0
		c := newClient(t, engine, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Observer: func(holdfast.Event) {
			told++
			panic("no metrics")
		}})
		l := mustAcquire(t, c, "a", nil)
		time.Sleep(time.Minute)
		expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
		wantErr(t, l.Release(t.Context()), nil)
		wantErr(t, c.Close(), nil)
		expect(t, told >= 10, "it received %d events", told)
		lines := log.lines()
		expect(t, len(lines) <= 2 && strings.Contains(lines[0], "level=WARN") && strings.Contains(lines[0], `panic="no metrics"`), "logged: %q", lines)
	})
}

// TestBlockingObserver checks that an Observer that does not return from its first event delays no
// acquire, wait, release or loss, and Close only by the request timeout. When it returns, the
// number of dropped events is logged, and those that it received balance.
func TestBlockingObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log, free := newFaulty(), &logBuffer{}, make(chan struct{})
		g := newPairs(t)
		c := newClient(t, engine, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Observer: func(e holdfast.Event) {
			<-free
			g.observe(e)
		}})
		began := time.Now()
		held := mustAcquire(t, c, "held", nil)
		waiter := enqueue(t.Context(), c, "held", nil)
		for i := range 5000 { // more than the buffer holds
			wantErr(t, mustAcquire(t, c, fmt.Sprint(i), nil).Release(t.Context()), nil)
		}
		wantErr(t, held.Release(t.Context()), nil)
		l := granted(t, waiter).lease
		took := time.Since(began)
		expect(t, took <= 0, "5,000 acquires and releases took %s", took)
		time.Sleep(time.Minute)
		expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
		takeAway(t, engine.Engine, "held")
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		began = time.Now()
		wantErr(t, c.Close(), nil)
		took = time.Since(began)
		expect(t, took == 5*time.Second, "Close took %s, want the request timeout", took)
		close(free)
		wantErr(t, c.Close(), nil)
		g.balance()
		text := strings.Join(log.lines(), "\n")
		for _, part := range []string{"the Observer blocks", "dropped=", "undelivered=", "name=held"} {
			expect(t, strings.Contains(text, part), "no %s is logged:\n%s", part, text)
		}
		expect(t, g.seen[holdfast.Acquired] >= 1000 && g.seen[holdfast.Acquired] <= 4096, "it received %d acquires", g.seen[holdfast.Acquired])
	})
}

// heard records events for one test in a bubble.
type heard struct {
	mu     sync.Mutex
	events []holdfast.Event
}

func (h *heard) observe(e holdfast.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// take returns the events since the last take.
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

// wantKinds takes the events, and ends the test unless they are of these kinds.
func (h *heard) wantKinds(t *testing.T, want ...holdfast.EventKind) []holdfast.Event {
	t.Helper()
	events := h.take()
	need(t, fmt.Sprint(kindsOf(events)) == fmt.Sprint(want), "events %v, want %v", kindsOf(events), want)
	return events
}

// TestEventFields checks the fields of the events of a lock, from the wait to the break.
func TestEventFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type spanKey struct{}
		ctx := context.WithValue(t.Context(), spanKey{}, "span")
		store, h := mem.New(nil), &heard{}
		other := newClient(t, store, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3"}})
		c := newClient(t, store, &holdfast.Options{Observer: h.observe})
		held, second := mustAcquire(t, other, "a", nil), enqueue(t.Context(), other, "a", nil)
		waiter := enqueue(ctx, c, "a", nil)
		time.Sleep(3 * time.Second)
		must(t, held.Release(t.Context()))
		before := granted(t, second).lease
		time.Sleep(7 * time.Second)
		must(t, before.Release(t.Context()))
		l := granted(t, waiter).lease
		events := h.wantKinds(t, holdfast.Waiting, holdfast.PlaceChanged, holdfast.HandedOver, holdfast.Acquired)
		for i, e := range events {
			expect(t, e.Name == "a" && e.Key == events[0].Key && e.LeaseID == l.ID() && e.Mode == holdfast.Exclusive && e.Attempt == 1 && e.Holder.Host == "web-3" && e.Context.Value(spanKey{}) == "span",
				"event %d: %+v", i, e)
		}
		waits, moved, got := events[0], events[1], events[3]
		expect(t, waits.Place == 2 && waits.Queue == 2 && errors.Is(waits.Err, holdfast.ErrHeld) && waits.BeginsWait(),
			"%s: place %d of %d, %v", waits.Kind, waits.Place, waits.Queue, waits.Err)
		expect(t, moved.Place == 1 && moved.Queue == 1, "%s: place %d of %d", moved.Kind, moved.Place, moved.Queue)
		expect(t, got.Waited == 10*time.Second && got.EndsWait() && got.BeginsHold() && got.Token == l.Token() && got.Remaining > 0 && got.Remaining <= 5*time.Second,
			"%s: waited %s, remaining %s, %+v", got.Kind, got.Waited, got.Remaining, got)
		time.Sleep(time.Second)
		renewed := h.wantKinds(t, holdfast.Renewed)[0]
		expect(t, renewed.Remaining >= 26*time.Second && renewed.Key == got.Key && renewed.Context.Value(spanKey{}) == "span",
			"%s: remaining %s, %+v", renewed.Kind, renewed.Remaining, renewed)
		_, err := other.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"})
		must(t, err)
		for _, e := range h.wantKinds(t, holdfast.LeaseBroken, holdfast.Lost) {
			expect(t, e.Author == "ada" && e.Reason == "its node is gone" && errors.Is(e.Err, holdfast.ErrBroken) && e.Held == time.Second && e.EndsHold() == (e.Kind == holdfast.Lost),
				"%s: %+v", e.Kind, e)
		}
		l.Release(t.Context())
		h.wantKinds(t)
	})
}

// TestReplayIsNotARefusal checks that a replay of do-once work is not reported as a refusal, and
// that work in progress is reported as one, with ErrInProgress.
func TestReplayIsNotARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		c := newClient(t, mem.New(nil), &holdfast.Options{Observer: h.observe})
		work := func(context.Context, *holdfast.Lease) ([]byte, error) {
			time.Sleep(time.Second)
			return nil, nil
		}
		go c.Once(t.Context(), "k", nil, work)
		synctest.Wait()
		wantErr(t, errOf(c.Once(t.Context(), "k", nil, work)), holdfast.ErrInProgress)
		refused := h.wantKinds(t, holdfast.Acquired, holdfast.Refused)[1]
		expect(t, errors.Is(refused.Err, holdfast.ErrInProgress) && refused.Once && !refused.EndsWait(), "refused: %+v", refused)
		result, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Await: holdfast.Forever}, work)
		need(t, err == nil && result.Replayed, "%+v, %v", result, err)
		var replayed holdfast.Event
		for _, e := range h.take() {
			expect(t, e.Kind != holdfast.Refused, "refused: %v", e.Err)
			if e.Kind == holdfast.OnceReplayed {
				replayed = e
			}
		}
		expect(t, replayed.Token == result.Token && replayed.Once && replayed.EndsWait() && replayed.Err == nil, "replayed: %+v", replayed)
	})
}

// TestRunFailed checks that the event of a run without a result contains the reason.
func TestRunFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errWork, h := errors.New("the disk is full"), &heard{}
		c := newClient(t, mem.New(nil), &holdfast.Options{Observer: h.observe})
		c.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, errWork })
		e := h.wantKinds(t, holdfast.Acquired, holdfast.OnceFailed, holdfast.Released)[1]
		expect(t, errors.Is(e.Err, errWork), "%v", e.Err)
		c.Once(t.Context(), "k", &holdfast.OnceOptions{MaxResult: 1}, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("long"), nil })
		e = h.wantKinds(t, holdfast.Acquired, holdfast.OnceFailed, holdfast.Released)[1]
		expect(t, errors.Is(e.Err, holdfast.ErrInvalid), "%v", e.Err)
	})
}

// TestFeed checks that a feed begins with a gap, yields the events of the requested names, and ends
// with its context.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			for _, name := range []string{"a/1", "b", "a/2"} {
				_ = mustAcquire(t, c, name, nil).Release(ctx)
			}
			synctest.Wait()
			cancel()
		}()
		var told []string
		var ended error
		for e, err := range c.Feed(ctx, "a/") {
			if ended = err; err == nil {
				told = append(told, fmt.Sprint(e.Kind, " ", e.Name))
			}
		}
		if want := []string{"gap ", "acquired a/1", "released a/1", "acquired a/2", "released a/2"}; !slices.Equal(told, want) {
			t.Errorf("received %q, want %q", told, want)
		}
		expect(t, errors.Is(ended, context.Canceled), "the feed ended with %v, want context.Canceled", ended)
	})
}

// TestFeedIsBounded checks that a slow loop over a feed misses events, receives a gap for them, and
// still receives the latest, and that it delays no other call.
func TestFeedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		const many = 3000 // pairs
		gaps, n := 0, 0
		var last holdfast.HistoryEvent
		for e, err := range c.Feed(t.Context(), "") {
			must(t, err)
			if e.Kind == holdfast.HistoryGap {
				gaps++
			}
			if n++; n == 1 {
				for range many {
					_ = mustAcquire(t, c, "a", nil).Release(t.Context())
				}
				l := mustAcquire(t, c, "last", nil)
				defer l.Release(t.Context())
				synctest.Wait()
			}
			if last = e; e.Name == "last" {
				break
			}
		}
		expect(t, gaps >= 2 && n <= 4097 && last.Name == "last", "%d events, %d gaps, the last of %q", n, gaps, last.Name)
	})
}

// TestFeedEndsWithClose checks that Close ends a feed instead of waiting for it.
func TestFeedEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		go func() {
			synctest.Wait()
			_ = c.Close()
		}()
		var ended error
		for _, err := range c.Feed(t.Context(), "") {
			ended = err
		}
		expect(t, errors.Is(ended, holdfast.ErrClosed), "the feed ended with %v, want ErrClosed", ended)
	})
}
