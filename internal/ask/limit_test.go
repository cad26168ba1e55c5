package ask_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/contexttest"
)

// A foreignContext is a context whose channel package context does not know.
type foreignContext struct {
	context.Context
	done chan struct{}
}

func foreign(ctx context.Context) context.Context {
	c := foreignContext{ctx, make(chan struct{})}
	context.AfterFunc(ctx, func() { close(c.done) })
	return c
}

func (c foreignContext) Done() <-chan struct{} { return c.done }

// A lateContext has a timer that fires after its deadline.
type lateContext struct {
	context.Context
	caller context.Context
	end    time.Time
}

func (c lateContext) Deadline() (time.Time, bool) {
	if end, ok := c.caller.Deadline(); ok && end.Before(c.end) {
		return end, true
	}
	return c.end, true
}

// A limitCase is an order of events that may end a limit, with the ways in which the test observes
// it. Events are letters: c cancels the caller's context, d is its deadline, l is the limit, and s
// stops the limit by its cancel function.
type limitCase struct {
	caller string // the kind of the caller's context
	events string
	first  contexttest.Look // what the test observes first at the end
	early  string           // what the test observes before the events; "" is nothing
	each   bool             // the test calls Err after each event, too
}

// run returns what the test observes of the context that limit returns.
func (c limitCase) run(t *testing.T, limit func(context.Context, time.Time) (context.Context, context.CancelFunc)) (said []string) {
	synctest.Test(t, func(t *testing.T) {
		base := context.WithValue(t.Context(), contexttest.Key, "the caller's")
		var caller context.Context
		end := func(error) {}
		switch c.caller {
		case "without end":
			caller = context.WithoutCancel(base)
		case "with a deadline":
			var cancel context.CancelFunc
			caller, cancel = context.WithTimeoutCause(base, time.Duration(strings.Index(c.events, "d")+1)*time.Second, errLink)
			defer cancel()
		default:
			caller, end = context.WithCancelCause(base)
			defer end(nil)
			if c.caller == "foreign" {
				caller = foreign(caller)
			}
		}
		// The limit passes at its place among the events, which come once a second.
		at := strings.Index(c.events+"l", "l") + 1
		ctx, cancel := limit(caller, time.Now().Add(time.Duration(at)*time.Second))
		defer cancel()
		see := func() string { return "" }
		switch c.early {
		case "":
		case "derived":
			child, stop := contexttest.Derive(ctx)
			defer stop()
			see = child.See
		default:
			said = append(said, look(c.early).See(ctx))
		}
		start := time.Now()
		for i, event := range c.events {
			time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second)))
			switch event {
			case 'c':
				end(errWish)
			case 's':
				cancel()
			}
			synctest.Wait()
			if c.each {
				said = append(said, look("Err").See(ctx))
			}
		}
		said = append(said, c.first.See(ctx), contexttest.All(ctx))
		cancel()
		time.Sleep(time.Hour)
		said = append(said, contexttest.All(ctx), see()) // the result does not change
	})
	return said
}

func look(name string) contexttest.Look {
	all := contexttest.Looks()
	return all[slices.IndexFunc(all, func(l contexttest.Look) bool { return l.Name == name })]
}

// limitCases calls each with all orders of events, and all ways to observe a limit.
func limitCases(each func(limitCase)) {
	for caller, kinds := range map[string][]string{
		"without end":     {"", "l", "s", "ls", "sl"},
		"with a deadline": {"d", "ds", "sd", "dl", "ld", "dls", "dsl", "lds", "lsd", "sdl", "sld"},
		"canceled":        {"", "l", "s", "c", "cs", "sc", "cl", "lc", "ls", "sl", "cls", "csl", "lcs", "lsc", "scl", "slc"},
		"foreign":         {"", "l", "s", "c", "cs", "sc", "cl", "lc"},
	} {
		for _, events := range kinds {
			for _, first := range contexttest.Looks() {
				for _, early := range []string{"", "Err", "Done", "Value", "derived"} {
					for _, often := range []bool{false, true} {
						each(limitCase{caller, events, first, early, often})
					}
				}
			}
		}
	}
}

// TestLimitIsAsTheStandardOne checks that a limit behaves like the context of
// context.WithDeadlineCause, whatever ends it and however it is observed. One difference
// corresponds to a late timer: a limit that passes while the context is not observed does not count
// if the caller or the request ends before the next observation.
func TestLimitIsAsTheStandardOne(t *testing.T) {
	n := 0
	limitCases(func(c limitCase) {
		i := strings.Index(c.events, "l")
		unseen := !c.each && (c.early == "" || c.early == "Err")
		late := unseen && i >= 0 && i < len(c.events)-1
		want := c.run(t, func(caller context.Context, end time.Time) (context.Context, context.CancelFunc) {
			if late {
				ctx, cancel := context.WithDeadlineCause(caller, end.Add(24*time.Hour), ask.ErrNoAnswer)
				return lateContext{ctx, caller, end}, cancel
			}
			return context.WithDeadlineCause(caller, end, ask.ErrNoAnswer)
		})
		got := c.run(t, ask.LimitUntil)
		if n++; !slices.Equal(got, want) {
			t.Errorf("%s, %s, first %s, early %s, each %t:\n got %s\nwant %s", c.caller, c.events, c.first.Name, c.early, c.each, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	})
	if n < 2000 {
		t.Errorf("%d cases", n)
	}
}

// TestLimitCostsNothingUnused checks that a request whose reply needs no wait starts no timer and
// registers nothing with its caller's context. Derived contexts start no goroutine.
func TestLimitCostsNothingUnused(t *testing.T) {
	caller, end := context.WithCancel(t.Context())
	defer end()
	if n := testing.AllocsPerRun(100, func() {
		ctx, cancel := ask.LimitUntil(caller, time.Now().Add(time.Hour))
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
		cancel()
	}); n > 1 {
		t.Errorf("%.0f allocations, want 1", n)
	}
	ctx, cancel := ask.Limit(caller, time.Hour)
	defer cancel()
	before := runtime.NumGoroutine()
	for range 100 {
		child, stop := context.WithCancel(context.WithValue(ctx, contexttest.Key, 1))
		defer stop()
		defer context.AfterFunc(child, func() {})()
	}
	if n := runtime.NumGoroutine() - before; n > 0 {
		t.Errorf("100 derived contexts run %d goroutines", n)
	}
}

// TestLimitForMany checks that all goroutines that observe a limit see the same error, and that it
// does not change.
func TestLimitForMany(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			caller, end := context.WithCancelCause(t.Context())
			ctx, cancel := ask.Limit(caller, time.Second)
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
						select {
						case <-ctx.Done():
						default:
							t.Error("not done")
						}
						if ctx.Err() != err || context.Cause(ctx) != cause {
							t.Errorf("%v (%v), then %v (%v)", err, cause, ctx.Err(), context.Cause(ctx))
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			for _, ends := range []func(){cancel, func() { end(errWish) }, cancel} {
				all.Go(func() {
					time.Sleep(time.Second)
					ends()
				})
			}
			all.Wait()
		})
	}
}

// TestParts checks that Parts returns the parts of a limit, and reports that other contexts have
// none.
func TestParts(t *testing.T) {
	end := time.Now().Add(time.Hour)
	limit, stop := ask.LimitUntil(t.Context(), end)
	defer stop()
	if caller, until, ok := ask.Parts(limit); !ok || caller != t.Context() || !until.Equal(end) {
		t.Errorf("%v, %s, %t", caller, until, ok)
	}
	derived, cancel := context.WithCancel(limit)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), derived} {
		if _, _, ok := ask.Parts(ctx); ok {
			t.Errorf("%v has parts", ctx)
		}
	}
}
