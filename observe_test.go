package holdfast_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
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
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				if late := time.Since(at); late > 0 {
					t.Errorf("the last of 100 contexts ended %s late", late)
				}
			})
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
		if !l.Valid() {
			t.Errorf("lost: %v", context.Cause(l.Context()))
		}
		takeAway(t, engine.Engine, "a")
		time.Sleep(5 * time.Second)
		if l.Valid() {
			t.Error("the loss is unknown 5 s after it")
		}
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
			if kinds[0] != holdfast.Acquired || slices.Index(kinds, end) != len(kinds)-1 {
				t.Errorf("lease %d: events = %v, want %s at last", i, kinds, end)
			}
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
		if !l.Valid() {
			t.Errorf("lost: %v", context.Cause(l.Context()))
		}
		wantErr(t, l.Release(t.Context()), nil)
		wantErr(t, c.Close(t.Context()), nil)
		if told < 10 {
			t.Errorf("it was told of %d events", told)
		}
		lines := log.lines()
		if len(lines) > 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], `panic="no metrics"`) {
			t.Errorf("logged: %q", lines)
		}
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
		if !l.Valid() {
			t.Errorf("lost: %v", context.Cause(l.Context()))
		}
		takeAway(t, engine.Engine, "held")
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		began = time.Now()
		wantErr(t, c.Close(t.Context()), nil)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Close took %s, want the request timeout", took)
		}
		close(free)
		wantErr(t, c.Close(t.Context()), nil)
		g.balance()
		text := strings.Join(log.lines(), "\n")
		for _, part := range []string{"the Observer blocks", "dropped=", "untold=", "name=held"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %s is logged:\n%s", part, text)
			}
		}
		if g.seen[holdfast.Acquired] < 1000 || g.seen[holdfast.Acquired] > 4096 {
			t.Errorf("it was told of %d acquires", g.seen[holdfast.Acquired])
		}
	})
}
