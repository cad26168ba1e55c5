package door

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-locks/holdfast/internal/ask"
)

// background is the work of a server that belongs to no request. It ends with the server.
type background struct {
	mu   sync.Mutex
	life context.Context // nil before the first work
	end  context.CancelFunc
	work sync.WaitGroup // added to under mu, until life ends
}

// Go runs f on a goroutine, under a context that ends with stop or when the server closes.
// A panic of f is logged; what names it.
func (h *House) Go(what string, f func(context.Context)) (stop context.CancelFunc) {
	b := &h.background
	b.mu.Lock()
	defer b.mu.Unlock()
	b.initLocked()
	ctx, stop := context.WithCancel(b.life)
	work := func() {
		defer stop()
		_ = h.Guard(ctx, what, func() { f(ctx) })
	}
	if ctx.Err() == nil {
		b.work.Go(work)
	} else { // Close no longer waits; f notices that it must end
		go work()
	}
	return stop
}

func (b *background) initLocked() {
	if b.life == nil {
		b.life, b.end = context.WithCancel(context.Background())
	}
}

// close ends all work, and waits for it until ctx ends.
func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	b.initLocked()
	b.end()
	b.mu.Unlock()
	return within(ctx, func() error {
		b.work.Wait()
		return nil
	})
}

// within returns the result of f, or an error if ctx ends before.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("server: close: a request to the store is still under way: %w", ask.ContextError(ctx))
	}
}
