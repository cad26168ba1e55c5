package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// INVARIANT I3: an Observer that takes its time delays no loss, however the
// client learns of it.
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

// An Observer that never returns holds up neither renewals nor losses.
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

// What the Observer hears of a lease is in order, even if it is slow: nothing
// comes after the end.
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
		time.Sleep(6 * time.Second) // the renewals of the first ten are told
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

// An Observer that panics each time costs its events, and a warning.
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
		expect(t, told >= 10, "it was told of %d events", told)
		lines := log.lines()
		expect(t, len(lines) <= 2 && strings.Contains(lines[0], "level=WARN") && strings.Contains(lines[0], `panic="no metrics"`), "logged: %q", lines)
	})
}

// An Observer that does not return from its first event holds up nothing: not an
// acquire, a wait, a release, or a loss, nor Close for ever. When it goes on, what it
// has missed is logged, and what it was told balances.
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
		for i := range 5000 { // more than fit
			wantErr(t, mustAcquire(t, c, fmt.Sprint(i), nil).Release(t.Context()), nil)
		}
		wantErr(t, held.Release(t.Context()), nil)
		l := granted(t, waiter).lease
		if took := time.Since(began); took > 0 {
			t.Errorf("5,000 acquires and releases took %s", took)
		}
		time.Sleep(time.Minute)
		expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
		takeAway(t, engine.Engine, "held")
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		began = time.Now()
		wantErr(t, c.Close(), nil)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Close took %s, want the request timeout", took)
		}
		close(free)
		wantErr(t, c.Close(), nil)
		g.balance()
		text := strings.Join(log.lines(), "\n")
		for _, part := range []string{"the Observer blocks", "dropped=", "untold=", "name=held"} {
			expect(t, strings.Contains(text, part), "no %s is logged:\n%s", part, text)
		}
		expect(t, g.seen[holdfast.Acquired] >= 1000 && g.seen[holdfast.Acquired] <= 4096, "it was told of %d acquires", g.seen[holdfast.Acquired])
	})
}

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
	need(t, fmt.Sprint(kindsOf(events)) == fmt.Sprint(want), "events %v, want %v", kindsOf(events), want)
	return events
}

// What the events of a lock have in them, from the wait to the break.
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

// A replay of do-once work is not a refusal, and one in progress is one that says so.
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
		_, err := c.Once(t.Context(), "k", nil, work)
		wantErr(t, err, holdfast.ErrInProgress)
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

// Why a run has no result.
func TestRunFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errWork, h := errors.New("the disk is full"), &heard{}
		c := newClient(t, mem.New(nil), &holdfast.Options{Observer: h.observe})
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

// A pairs checks that what begins ends: it is an Observer.
type pairs struct {
	t *testing.T

	mu   sync.Mutex // guards the rest
	open map[holdfast.LeaseID]*account
	seen map[holdfast.EventKind]int
}

// An account is of one Key.
type account struct {
	waits, holds, runs, outages int // that have begun
	endedWaits, endedHolds      int
	endedRuns, endedOutages     int
	over                        bool // of the lease
	heard                       []holdfast.EventKind
}

func newPairs(t *testing.T) *pairs {
	return &pairs{t: t, open: map[holdfast.LeaseID]*account{}, seen: map[holdfast.EventKind]int{}}
}

func (g *pairs) observe(e holdfast.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[e.Kind]++
	if e.Time.IsZero() || e.Context == nil || e.Name == "" || e.Key == "" || e.LeaseID == "" {
		g.t.Errorf("%s: time %s, context %v, name %q", e.Kind, e.Time, e.Context, e.Name)
	}
	a := g.open[e.Key]
	if a == nil {
		a = &account{}
		g.open[e.Key] = a
	}
	a.heard = append(a.heard, e.Kind)
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	ofLease := e.Kind == holdfast.Renewed || e.Kind == holdfast.RenewFailed || e.EndsHold()
	if a.over && ofLease || ofLease && a.holds == 0 {
		g.t.Errorf("%s of a lease that is not held, or over: %v", e.Kind, a.heard)
	}
	count(&a.waits, e.BeginsWait())
	count(&a.endedWaits, e.EndsWait())
	count(&a.holds, e.BeginsHold())
	count(&a.endedHolds, e.EndsHold())
	count(&a.runs, e.BeginsHold() && e.Once)
	count(&a.endedRuns, e.Kind == holdfast.OnceCompleted || e.Kind == holdfast.OnceFailed || e.Kind == holdfast.LeaseLeft && e.Once)
	count(&a.outages, e.Kind == holdfast.OutageBegan)
	count(&a.endedOutages, e.Kind == holdfast.OutageEnded)
	a.over = a.over || e.EndsHold()
	if a.endedWaits > a.waits || a.endedHolds > a.holds || a.endedOutages > a.outages || a.outages > a.endedOutages+1 ||
		a.waits > 1 || a.holds > 1 || a.endedRuns > a.runs {
		g.t.Errorf("out of order: %v", a.heard)
	}
}

// balance fails the test for whatever has begun and not ended.
func (g *pairs) balance() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.open {
		if a.waits != a.endedWaits || a.holds != a.endedHolds || a.runs != a.endedRuns || a.outages != a.endedOutages {
			g.t.Errorf("this does not balance: %v", a.heard)
		}
	}
}

// TestObserverPairs: whatever happens, each wait that begins ends once, and so do each
// possession, each run of do-once work, and each outage.
func TestObserverPairs(t *testing.T) {
	all := map[holdfast.EventKind]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			g := newPairs(t)
			w := &pairsWorld{t: t, store: mem.New(nil), observer: g.observe}
			w.newClient(seed%2 == 0)
			w.newClient(seed%4 < 2)
			var workers sync.WaitGroup
			for i := range 6 {
				workers.Go(func() { w.work(rand.New(rand.NewPCG(seed, uint64(i)))) })
			}
			workers.Go(func() { w.trouble(rand.New(rand.NewPCG(seed, 99))) })
			workers.Wait()
			for _, engine := range w.engines {
				engine.heal()
			}
			for _, c := range w.clients {
				err := closePatiently(c)
				expect(t, err == nil, "seed %d: Close: %v", seed, err)
			}
			g.balance() // at once: Close has waited until all was told
			for k, n := range g.seen {
				all[k] += n
			}
		})
		need(t, !t.Failed(), "seed %d", seed)
	}
	t.Log(all)
	for k := holdfast.Acquired; k <= holdfast.OnceFailed; k++ {
		expect(t, all[k] != 0, "no %s in all histories", k)
	}
}

type pairsWorld struct {
	t        *testing.T
	store    *mem.Engine
	observer holdfast.Observer
	engines  []*faulty
	clients  []*holdfast.Client
}

func (w *pairsWorld) newClient(cohorts bool) {
	engine := newFaultyOn(w.store)
	c := newClient(w.t, engine, &holdfast.Options{Observer: w.observer, TTL: 5 * time.Second, RequestTimeout: 2 * time.Second, Cohorts: cohorts})
	w.engines, w.clients = append(w.engines, engine), append(w.clients, c)
}

// trouble makes the stores fail, lose replies, answer late or not at all, and takes
// locks away.
func (w *pairsWorld) trouble(r *rand.Rand) {
	ops := []string{"acquire", "acquire-all", "extend", "release", "refresh", "complete"}
	for range 40 {
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
		engine, op := w.engines[r.IntN(len(w.engines))], ops[r.IntN(len(ops))]
		name := fmt.Sprint("n", r.IntN(3))
		switch r.IntN(9) {
		case 0:
			engine.set(fail(errLink, op), nil)
		case 1:
			engine.set(nil, fail(errLink, op))
		case 2:
			engine.set(hang(op), nil)
		case 3:
			engine.set(delay(time.Duration(r.IntN(700))*time.Millisecond), nil)
		case 4:
			engine.set(fail(driver.ErrPermission, op), nil)
		case 5:
			w.clients[r.IntN(2)].Break(context.Background(), name, &holdfast.BreakOptions{Author: "ada", Reason: "test"})
		case 6:
			if lock, err := w.store.Inspect(context.Background(), name); err == nil {
				for _, h := range lock.Holders {
					w.store.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID})
				}
			}
		default:
			engine.heal()
		}
	}
}

// work does what callers do, right and wrong.
func (w *pairsWorld) work(r *rand.Rand) {
	for range 25 {
		c := w.clients[r.IntN(len(w.clients))]
		name := fmt.Sprint("n", r.IntN(3))
		opts := &holdfast.AcquireOptions{MaxWait: time.Duration(1+r.IntN(8000)) * time.Millisecond, WholeTTL: r.IntN(4) == 0}
		if r.IntN(4) == 0 {
			opts.Mode = holdfast.Shared
		}
		if r.IntN(5) == 0 {
			opts.MaxHold = time.Second
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(10_000))*time.Millisecond)
		pause := func() { time.Sleep(time.Duration(r.IntN(7000)) * time.Millisecond) }
		end := func(l *holdfast.Lease, err error) {
			if err != nil {
				return
			}
			pause()
			if r.IntN(8) == 0 {
				if handle, left := l.Leave(); left == nil {
					if l, err = w.clients[r.IntN(2)].Adopt(context.Background(), handle, nil); err != nil {
						return
					}
				}
			}
			if r.IntN(10) > 0 { // else Close does
				l.Release(ctx)
			}
		}
		switch r.IntN(8) {
		case 0:
			end(c.TryAcquire(ctx, name, opts))
		case 1:
			if ls, err := c.AcquireAll(ctx, []string{"n0", "n1", "n2"}, opts); err == nil {
				pause()
				ls.Release(ctx)
			}
		case 2:
			opts.OnWait = func(holdfast.WaitState) { panic("OnWait") }
			func() {
				defer func() { _ = recover() }()
				end(c.Acquire(ctx, name, opts))
			}()
		case 3, 4:
			key := fmt.Sprint("once", r.IntN(4))
			func() {
				defer func() { _ = recover() }()
				c.Once(ctx, key, &holdfast.OnceOptions{Await: holdfast.Forever * time.Duration(r.IntN(2)), Retention: 5 * time.Second}, func(context.Context, *holdfast.Lease) ([]byte, error) {
					pause()
					switch r.IntN(6) {
					case 0:
						return nil, errors.New("failed")
					case 1:
						panic("work")
					}
					return []byte("done"), nil
				})
			}()
		default:
			end(c.Acquire(ctx, name, opts))
		}
		cancel()
	}
}
