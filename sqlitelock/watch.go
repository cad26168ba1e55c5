package sqlitelock

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
)

// Watch implements driver.Notifier. A release in this engine signals at once,
// one elsewhere through the bell.
func (e *Engine) Watch(ctx context.Context, name string) (driver.Watch, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.users.Done()
	// The bell is heard before the name is looked at, so that no release
	// falls between.
	e.listen()
	w := &watch{all: &e.watches, name: name, c: make(chan struct{}, 1)}
	e.watches.add(w)
	err := e.patient(ctx, func() error {
		l, err := e.find(e.read.lease, name)
		if err == nil {
			e.watches.start(w, l.sight())
		}
		return err
	})
	if err != nil {
		w.Stop()
		return nil, refused(err)
	}
	return w, nil
}

// A sight is what tells one lease of a name from the next: that it is the
// same one, and that it was not released.
type sight struct {
	id       string
	released bool
}

func (l *lease) sight() sight { return sight{l.id, l.released} }

// A watch is one caller's interest in one name.
type watch struct {
	all  *watches
	name string
	c    chan struct{} // holds one signal

	// What was seen of the name last, so that the bell of another name does
	// not signal. Guarded by all.mu.
	seen    sight
	started bool
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Stop() { w.all.remove(w) }

func (w *watch) signal() {
	select {
	case w.c <- struct{}{}:
	default: // a signal is waiting already
	}
}

// watches are those of one engine.
type watches struct {
	mu     sync.Mutex
	byName map[string]map[*watch]struct{}
}

func (a *watches) add(w *watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName = map[string]map[*watch]struct{}{}
	}
	if a.byName[w.name] == nil {
		a.byName[w.name] = map[*watch]struct{}{}
	}
	a.byName[w.name][w] = struct{}{}
}

// start records what w's caller may know of the name, unless a later look was
// recorded already.
func (a *watches) start(w *watch, s sight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !w.started {
		w.started, w.seen = true, s
	}
}

func (a *watches) remove(w *watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName[w.name], w)
	if len(a.byName[w.name]) == 0 {
		delete(a.byName, w.name)
	}
}

// of returns the watches of the names that are asked for.
func (a *watches) of(asked func(name string) bool) map[string][]*watch {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := map[string][]*watch{}
	for name, ws := range a.byName {
		if asked(name) {
			found[name] = slices.Collect(maps.Keys(ws))
		}
	}
	return found
}

// signal wakes all watches of a name.
func (a *watches) signal(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.byName[name] {
		w.signal()
	}
}

// found tells watches what a look at their name, made after they were added,
// has found. It wakes them if the name is free, or if they have seen something
// else before.
func (a *watches) found(ws []*watch, now sight, free bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range ws {
		_, stays := a.byName[w.name][w]
		if stays && (free || !w.started || w.seen != now) {
			w.signal()
		}
		w.started, w.seen = true, now
	}
}
