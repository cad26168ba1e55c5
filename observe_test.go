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
