package driver

import (
	"maps"
	"slices"
	"sync"
)

// maxWaiting is how many events wait for listeners who take their time.
// INVARIANT I11.
const maxWaiting = 4096

// A Feed is what OnEvent of a Historian in Go is made of: it knows who listens, and
// tells them in order, on one goroutine, which ends when there is nothing to tell.
// The zero Feed is ready to use.
type Feed struct {
	mu        sync.Mutex
	listeners map[*func(Event)]uint64 // the number of the last event that each came too late for
	last      uint64
	waiting   []delivery // to be told
	telling   bool       // there is a goroutine
}

// A delivery is one event that is to be told.
type delivery struct {
	Event
	number uint64
	only   *func(Event) // nil: everybody who listens
}

// OnEvent registers told as Historian.OnEvent does. Listens says that the engine
// listens already: then told is told EventGap soon. Otherwise the engine tells that
// everybody, with Tell, once it listens.
func (f *Feed) OnEvent(told func(Event), listens bool) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*func(Event)]uint64{}
	}
	f.listeners[&told] = f.last
	if listens {
		f.tellLocked(delivery{only: &told}) // an EventGap
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, &told)
	}
}

// Heard reports whether anybody listens.
func (f *Feed) Heard() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners) > 0
}

// Tell tells everybody who listens, after what was told before. It does not wait for
// them, so an engine may hold a lock of its own. If they take too long, what waits
// becomes an EventGap.
func (f *Feed) Tell(events ...Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listeners) == 0 {
		return
	}
	for _, e := range events {
		f.tellLocked(delivery{Event: e})
	}
}

// tellLocked puts d in line to be told.
func (f *Feed) tellLocked(d delivery) {
	f.last++
	d.number = f.last
	if len(f.waiting) >= maxWaiting {
		f.waiting = append(f.waiting[:0], delivery{number: f.last}) // an EventGap
	}
	f.waiting = append(f.waiting, d)
	if !f.telling {
		f.telling = true
		go f.deliver()
	}
}

// deliver tells what waits until nothing does.
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

// deliverLocked tells one event, without f.mu while somebody is told.
func (f *Feed) deliverLocked(d delivery) {
	for _, told := range slices.Collect(maps.Keys(f.listeners)) {
		if since, listens := f.listeners[told]; listens && d.number > since && (d.only == nil || d.only == told) {
			f.mu.Unlock()
			(*told)(d.Event)
			f.mu.Lock()
		}
	}
}
