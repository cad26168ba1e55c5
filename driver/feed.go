package driver

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// maxWaiting is how many events may wait for slow listeners. INVARIANT I11.
const maxWaiting = 4096

// A Feed implements OnEvent for a Historian in Go. It delivers events to its
// listeners in order, on one goroutine that ends when no event is left. The zero
// Feed is ready to use.
type Feed struct {
	mu        sync.Mutex
	listeners map[*func(lockinfo.HistoryEvent)]uint64 // the number of the last event before each was registered
	last      uint64
	waiting   []delivery // not delivered yet
	telling   bool       // the goroutine of deliver runs
}

// A delivery is one event to be delivered.
type delivery struct {
	lockinfo.HistoryEvent
	number uint64
	only   *func(lockinfo.HistoryEvent) // the only listener to receive it; nil: all of them
}

// OnEvent registers listener as Historian.OnEvent does. If the engine listens already, the Feed calls
// listener with HistoryGap soon. Otherwise the engine must call Tell with HistoryGap once it listens.
func (f *Feed) OnEvent(listener func(lockinfo.HistoryEvent), listens bool) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*func(lockinfo.HistoryEvent)]uint64{}
	}
	f.listeners[&listener] = f.last
	if listens {
		f.tellLocked(delivery{only: &listener}) // a HistoryGap
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, &listener)
	}
}

// Heard reports whether there is a listener.
func (f *Feed) Heard() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners) > 0
}

// Tell delivers events to all listeners, after the earlier ones. It does not wait for
// the listeners, so an engine may hold a lock of its own. If they take too long, the
// waiting events become a HistoryGap.
func (f *Feed) Tell(events ...lockinfo.HistoryEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listeners) == 0 {
		return
	}
	for _, e := range events {
		f.tellLocked(delivery{HistoryEvent: e})
	}
}

// tellLocked appends d to the waiting deliveries.
func (f *Feed) tellLocked(d delivery) {
	f.last++
	d.number = f.last
	if len(f.waiting) >= maxWaiting {
		f.waiting = append(f.waiting[:0], delivery{number: f.last}) // a HistoryGap
	}
	f.waiting = append(f.waiting, d)
	if !f.telling {
		f.telling = true
		go f.deliver()
	}
}

// deliver delivers the waiting events until none is left.
func (f *Feed) deliver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 {
		batch := f.waiting
		f.waiting = nil
		for _, d := range batch {
			f.deliverLocked(d)
		}
	}
	f.telling = false
}

// deliverLocked delivers one event, without f.mu during the calls.
func (f *Feed) deliverLocked(d delivery) {
	for _, listener := range slices.Collect(maps.Keys(f.listeners)) {
		if since, listens := f.listeners[listener]; listens && d.number > since && (d.only == nil || d.only == listener) {
			f.mu.Unlock()
			(*listener)(d.HistoryEvent)
			f.mu.Lock()
		}
	}
}
