package door

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Guard runs f, which works for r on a goroutine that is not the handler's. A panic of f is
// logged like one of the handler, and ends neither the server nor another request. Guard then
// returns the error to answer r with.
func (r *Request) Guard(f func()) (err error) { return r.House.Guard(r.Context(), r.Pattern, f) }

// Guard does as Request.Guard, for background work: what names it in the log.
func (h *House) Guard(ctx context.Context, what string, f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			h.panicked(ctx, what, v)
			err = ErrInternal
		}
	}()
	f()
	return nil
}

// Each runs f for 0 to n-1, all at the same time and off the handler's goroutine, and
// returns when all have ended.
func (r *Request) Each(n int, f func(i int)) error {
	faults := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { faults[i] = r.Guard(func() { f(i) }) })
	}
	all.Wait()
	return cmp.Or(faults...)
}

// AtOnce is how many requests to the store one request of a client may have under way.
const AtOnce = 32

// Some does as Each, with at most atOnce calls of f at the same time.
func (r *Request) Some(n, atOnce int, f func(i int)) error {
	var begun atomic.Int64
	return r.Each(min(n, atOnce), func(int) {
		for i := int(begun.Add(1)) - 1; i < n; i = int(begun.Add(1)) - 1 {
			f(i)
		}
	})
}

// Aside runs f on a goroutine of its own, and returns when it has ended.
func (r *Request) Aside(f func()) error { return r.Each(1, func(int) { f() }) }

// panicked logs a panic without its value. It must be called on the stack of the panic.
func (h *House) panicked(ctx context.Context, request string, v any) {
	what := fmt.Sprintf("%T", v)
	if err, ok := v.(runtime.Error); ok {
		what = err.Error()
	}
	h.Log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("what", what), slog.String("request", request), slog.String("stack", string(debug.Stack())))
}
