package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/contexttest"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A contextCase is an order in which a lease and its context end, and are looked
// at. Its events are letters: c the caller's context ends, which does nothing, x the
// deadline passes, b the lock is broken, w the machine wakes after the deadline and
// Valid is asked, r Release.
type contextCase struct {
	events string
	first  contexttest.Look // what is looked at first at the end
	early  contexttest.Look // what is looked at before all, unless it is zero
	each   bool             // Err is looked at after each event, too
}

// A twin is the context of a lease, and a standard one that ends with the lease.
type twin struct {
	contexts [2]context.Context
	said     [2][]string
}

func (w *twin) see(look func(context.Context) string) {
	for i, ctx := range w.contexts {
		w.said[i] = append(w.said[i], look(ctx))
	}
}

func (c contextCase) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancelCause(context.WithValue(t.Context(), contexttest.Key, "the caller's"))
		defer leave(nil)
		standard, end := context.WithCancelCause(context.WithoutCancel(caller))
		var lost atomic.Bool
		client := newClient(t, memlock.New(), &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Lost {
				end(e.Err)
				lost.Store(true)
			}
		}})
		start := time.Now()
		var asleep atomic.Int64
		holdfast.SetBootClock(client, func() time.Duration { return time.Hour + time.Since(start) + time.Duration(asleep.Load()) })
		ttl := time.Hour
		if i := strings.Index(c.events, "x"); i >= 0 {
			ttl = time.Duration(i)*time.Second + 900*time.Millisecond
		}
		l, err := client.TryAcquire(caller, "a", &holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff})
		if err != nil {
			t.Fatal(err)
		}
		w := twin{contexts: [2]context.Context{l.Context(), standard}}
		if c.early.See != nil {
			w.see(c.early.See)
		}
		var children []*contexttest.Child
		if c.early.Name == "derived" {
			for _, ctx := range w.contexts {
				child, stop := contexttest.Derive(ctx)
				defer stop()
				children = append(children, child)
			}
		}
		for i, event := range c.events {
			time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second)))
			switch event {
			case 'c':
				leave(errors.New("the caller has left"))
			case 'b':
				if _, err := client.Break(t.Context(), "a", &holdfast.BreakOptions{Reason: "test"}); err != nil {
					t.Fatal(err)
				}
			case 'w':
				asleep.Store(int64(2 * time.Hour))
				if l.Valid() {
					t.Error("valid after its deadline")
				}
			case 'r':
				if err := l.Release(t.Context()); (err != nil) != lost.Load() {
					t.Errorf("released: %v, lost: %t", err, lost.Load())
				}
				end(context.Canceled)
			}
			synctest.Wait()
			if c.each {
				w.see(func(ctx context.Context) string { return fmt.Sprint(ctx.Err()) })
			}
		}
		w.see(c.first.See)
		w.see(contexttest.All)
		time.Sleep(time.Minute)
		w.see(contexttest.All) // it sticks
		for i, child := range children {
			w.said[i] = append(w.said[i], child.See())
		}
		if !slices.Equal(w.said[0], w.said[1]) {
			t.Errorf("%s, first %s, early %s, each %t:\n got %s\nwant %s", c.events, c.first.Name, c.early.Name, c.each,
				strings.Join(w.said[0], "\n     "), strings.Join(w.said[1], "\n     "))
		}
		l.Release(t.Context())
		client.Close(t.Context())
	})
}

// TestLeaseContextIsAsAStandardOne: whatever ends a lease, and however its context
// is looked at before and after, that says what one of context.WithCancelCause says
// which ends with the lease.
func TestLeaseContextIsAsAStandardOne(t *testing.T) {
	for _, events := range []string{"", "c", "x", "b", "w", "r", "rx", "rb", "rw", "xr", "br", "wr", "cr", "rc", "cx", "xb", "xw", "cbr", "rcx"} {
		for _, first := range contexttest.Looks() {
			for _, early := range append(contexttest.Looks(), contexttest.Look{}) {
				for _, each := range []bool{false, true} {
					contextCase{events, first, early, each}.run(t)
				}
			}
		}
	}
}

// TestLeaseContextCostsNothingUnused: a lease whose context nobody waits for has
// none, and one that is derived from it starts no goroutine.
func TestLeaseContextCostsNothingUnused(t *testing.T) {
	c := newClient(t, memlock.New(), nil)
	var leases []*holdfast.Lease
	for i := range 101 { // one for each run, and one before them
		leases = append(leases, mustAcquire(t, c, fmt.Sprint(i), nil))
	}
	l := leases[0]
	if n := testing.AllocsPerRun(100, func() {
		l, leases = leases[0], leases[1:]
		if held, ok := holdfast.LeaseFromContext(l.Context()); l.Context().Err() != nil || !ok || held != l {
			t.Errorf("%v, lease %v", l.Context().Err(), held)
		}
	}); n > 0 {
		t.Errorf("%.0f allocations, want 0", n)
	}
	before := runtime.NumGoroutine()
	var children []context.Context
	for range 100 {
		child, stop := context.WithCancel(context.WithValue(l.Context(), contexttest.Key, 1))
		defer stop()
		defer context.AfterFunc(child, func() {})()
		children = append(children, child)
	}
	if n := runtime.NumGoroutine() - before; n > 0 {
		t.Errorf("100 derived contexts run %d goroutines", n)
	}
	l.Release(t.Context())
	for _, child := range children {
		if held, _ := holdfast.LeaseFromContext(child); held != l || child.Err() == nil {
			t.Errorf("a derived context: lease %v, %v", held, child.Err())
		}
	}
}

// TestLeaseContextForMany: whoever looks while a lease ends sees one end, and the
// same for ever; and no context lasts for longer than the lease.
func TestLeaseContextForMany(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, memlock.New(), nil)
			l, err := c.TryAcquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second, KeepAlive: holdfast.KeepAliveOff})
			if err != nil {
				t.Fatal(err)
			}
			ctx := l.Context()
			var all sync.WaitGroup
			for _, look := range []func() error{
				ctx.Err,
				func() error { <-ctx.Done(); return ctx.Err() },
				func() error { return context.Cause(ctx) },
				func() error { child, stop := context.WithCancel(ctx); defer stop(); return child.Err() },
			} {
				all.Go(func() {
					for look() == nil {
						time.Sleep(time.Millisecond)
					}
					err, cause := ctx.Err(), context.Cause(ctx)
					for range 10 {
						if ctx.Err() != err || context.Cause(ctx) != cause {
							t.Errorf("%v (%v), then %v (%v)", err, cause, ctx.Err(), context.Cause(ctx))
						}
						<-ctx.Done()
						time.Sleep(time.Millisecond)
					}
				})
			}
			for range 3 {
				all.Go(func() {
					time.Sleep(time.Until(l.Deadline()))
					l.Release(t.Context())
					if ctx.Err() == nil {
						t.Error("the context has outlived Release")
					}
				})
			}
			all.Wait()
		})
	}
}
