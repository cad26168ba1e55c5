package memlock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

type watch struct {
	engine *Engine
	name   string
	c      chan struct{} // holds one signal
}

// Watch implements driver.Notifier.
func (e *Engine) Watch(ctx context.Context, name string) (driver.Watch, error) {
	if _, err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	w := &watch{engine: e, name: name, c: make(chan struct{}, 1)}
	if e.watches[name] == nil {
		e.watches[name] = map[*watch]struct{}{}
	}
	e.watches[name][w] = struct{}{}
	return w, nil
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Stop() {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	delete(w.engine.watches[w.name], w)
	if len(w.engine.watches[w.name]) == 0 {
		delete(w.engine.watches, w.name)
	}
}

// signalLocked tells the watches of name that it may have become free.
func (e *Engine) signalLocked(name string) {
	for w := range e.watches[name] {
		select {
		case w.c <- struct{}{}:
		default: // a signal is waiting already
		}
	}
}

// List implements driver.Lister.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		locks, err := e.held(ctx, prefix)
		if err != nil {
			yield(driver.Lock{}, err)
			return
		}
		for _, l := range locks {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// held returns the locks that List yields. It takes a snapshot, so that the
// caller's loop body may use the engine.
func (e *Engine) held(ctx context.Context, prefix string) ([]driver.Lock, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var locks []driver.Lock
	for name := range e.locks {
		if strings.HasPrefix(name, prefix) && e.liveLocked(name, now) != nil {
			locks = append(locks, e.describeLocked(name, now))
		}
	}
	return locks, nil
}
