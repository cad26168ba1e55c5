package driver

import (
	"maps"
	"slices"
	"sync"
)

// Losses keeps who wants to hear of losses, for engines that are LossTellers.
// Its zero value is ready for use.
type Losses struct {
	mu        sync.Mutex
	listeners map[*func(Loss)]struct{}
}

// OnLoss does what LossTeller says.
func (l *Losses) OnLoss(told func(Loss)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = map[*func(Loss)]struct{}{}
	}
	l.listeners[&told] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, &told)
	}
}

// Heard reports whether anybody wants to hear of losses.
func (l *Losses) Heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners) > 0
}

// Tell tells everybody. The engine must not hold a lock of its own.
func (l *Losses) Tell(loss Loss) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.listeners))
	l.mu.Unlock()
	for _, told := range all {
		(*told)(loss)
	}
}
