package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func remembering() *mem.Engine { return mem.New(&mem.Options{History: true}) }

// happened returns the kinds of events.
func happened(events []holdfast.HistoryEvent) (kinds []holdfast.HistoryKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// wantHistory fails t unless the history of name consists of these kinds of events. It returns the
// events.
func wantHistory(t *testing.T, c *holdfast.Client, name string, want ...holdfast.HistoryKind) []holdfast.HistoryEvent {
	t.Helper()
	events, err := c.History(t.Context(), name)
	need(t, err == nil && slices.Equal(happened(events), want), "history of %q: %v, %v; want %v", name, happened(events), err, want)
	return events
}

// TestHistoryTellsWhatClientsDo checks the history of a wait, a hand-over and a release.
func TestHistoryTellsWhatClientsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, remembering(), nil)
		l := mustAcquire(t, c, "a", nil)
		time.AfterFunc(3*time.Second, func() { _ = l.Release(context.Background()) })
		next, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		events := wantHistory(t, c, "a", holdfast.HistoryAcquired, holdfast.HistoryQueued, holdfast.HistoryReleased, holdfast.HistoryHandedOver)
		e := events[2]
		expect(t, e.Token == l.Token() && e.Held == 3*time.Second, "released after %s, token %d", e.Held, e.Token)
		e = events[3]
		expect(t, e.Token == next.Token() && e.Waited == 3*time.Second && e.Holder.PID != 0, "handed over to %s after %s, token %d", e.Holder, e.Waited, e.Token)
		wantHistory(t, c, "unknown")
	})
}

// TestLostLeaseIsGivenBackAsLost checks that the history contains a loss if the client releases a
// lease that it has lost, and a release if it releases in time, even if the request arrives later.
func TestLostLeaseIsGivenBackAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &cutOff{Forward: driver.Forward{Engine: remembering()}}
		c := newClient(t, engine, &holdfast.Options{RequestTimeout: time.Second})
		lost := mustAcquire(t, c, "lost", &holdfast.AcquireOptions{MaxHold: time.Second})
		<-lost.Context().Done()
		wantErr(t, lost.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		wantHistory(t, c, "lost", holdfast.HistoryAcquired, holdfast.HistoryLost)

		late := mustAcquire(t, c, "late", nil)
		engine.off.Store(true)
		err := late.Release(t.Context())
		expect(t, err != nil, "Release of a store that does not answer: no error")
		engine.off.Store(false)
		time.Sleep(10 * time.Second)
		wantHistory(t, c, "late", holdfast.HistoryAcquired, holdfast.HistoryReleased)
	})
}

// A cutOff engine fails all releases while it is off.
type cutOff struct {
	driver.Forward
	off atomic.Bool
}

func (e *cutOff) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if e.off.Load() {
		return errors.New("cut off")
	}
	return e.Forward.Release(ctx, req)
}

// TestHistoryUnsupported checks that an engine without history leads to an error, not to an empty
// history.
func TestHistoryUnsupported(t *testing.T) {
	c := newClient(t, mem.New(nil), nil)
	const says = `holdfast: history of "a": history is not supported by this engine: open the engine with it`
	if _, err := c.History(t.Context(), "a"); !errors.Is(err, holdfast.ErrUnsupported) || err.Error() != says {
		t.Errorf("History = %v, want %s", err, says)
	}
	n := 0
	for e, err := range c.Feed(t.Context(), "") {
		if n++; !errors.Is(err, holdfast.ErrUnsupported) {
			t.Errorf("Feed yields %+v, %v; want ErrUnsupported", e, err)
		}
	}
	expect(t, n == 1, "Feed yields %d times, want once", n)
}

// TestHistoryOfStoreThatHangs checks that History returns after the request timeout.
func TestHistoryOfStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, hangs{driver.Forward{Engine: remembering()}}, &holdfast.Options{RequestTimeout: time.Second})
		start := time.Now()
		_, err := c.History(t.Context(), "a")
		took := time.Since(start)
		expect(t, errors.Is(err, holdfast.ErrUnavailable) && took == time.Second, "History = %v after %s, want ErrUnavailable after 1s", err, took)
	})
}

type hangs struct{ driver.Forward }

func (hangs) History(ctx context.Context, _ string) ([]lockinfo.HistoryEvent, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A pairs is an Observer that checks that waits, holds, runs and outages that begin also end.
type pairs struct {
	t *testing.T

	mu   sync.Mutex // guards the rest
	open map[holdfast.LeaseID]*account
	seen map[holdfast.EventKind]int
}

// An account counts the events of one Key.
type account struct {
	waits, holds, runs, outages int // those that have begun
	endedWaits, endedHolds      int
	endedRuns, endedOutages     int
	over                        bool // the lease has ended
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

// balance fails the test for everything that has begun and not ended.
func (g *pairs) balance() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.open {
		if a.waits != a.endedWaits || a.holds != a.endedHolds || a.runs != a.endedRuns || a.outages != a.endedOutages {
			g.t.Errorf("this does not balance: %v", a.heard)
		}
	}
}

// TestObserverPairs checks that under random faults each wait, hold, run of do-once work and outage
// that begins ends once.
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
			g.balance() // Close has waited until the Observer received all events
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

// trouble makes requests and replies fail, hang or take long, and ends leases.
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

// work makes random calls, with proper and improper use.
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
			if r.IntN(10) > 0 { // otherwise Close releases it
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

// TestOnceIsObserved checks the events of do-once work: the Observer receives how the run ended,
// and one end of its lease.
func TestOnceIsObserved(t *testing.T) {
	for want, work := range map[string]func(*faulty, context.Context, *holdfast.Lease){
		"[acquired once-completed released]": func(*faulty, context.Context, *holdfast.Lease) {},
		"[acquired once-failed lost]": func(engine *faulty, ctx context.Context, l *holdfast.Lease) {
			engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
		},
		"[acquired renew-failed lost once-failed]": func(engine *faulty, ctx context.Context, l *holdfast.Lease) {
			engine.set(fail(errLink, "extend"), nil)
			<-ctx.Done()
			time.Sleep(4 * time.Second) // past the expiry
		},
	} {
		runInBubble(t, want, func(t *testing.T) {
			var mu sync.Mutex
			var kinds []holdfast.EventKind
			engine := newFaulty()
			c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
				mu.Lock()
				defer mu.Unlock()
				if n := len(kinds); n == 0 || kinds[n-1] != e.Kind || e.Kind == holdfast.Lost {
					kinds = append(kinds, e.Kind)
				}
			}})
			c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
				work(engine, ctx, l)
				return nil, nil
			})
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			got := fmt.Sprint(kinds)
			expect(t, got == want, "events %s, want %s", got, want)
		})
	}
}
