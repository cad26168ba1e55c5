package driver

import "sync"

// maxWaiting is how many events wait for listeners who take their time.
// INVARIANT I11.
const maxWaiting = 4096

// A Feed is what OnEvent of a Historian in Go is made of: it knows who listens, and
// tells them in order, on one goroutine, which ends when there is nothing to tell.
// The zero Feed is ready to use.
type Feed struct {
	mu        sync.Mutex
	listeners map[*func(Event)]struct{}
	waiting   []Event // to be told
	telling   bool    // there is a goroutine
}

// OnEvent registers told as Historian.OnEvent does, but for the first EventGap. The
// engine tells that, with Tell, once it listens.
func (f *Feed) OnEvent(told func(Event)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*func(Event)]struct{}{}
	}
	f.listeners[&told] = struct{}{}
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
	if len(f.listeners) == 0 || len(events) == 0 {
		return
	}
	if len(f.waiting)+len(events) > maxWaiting {
		f.waiting = append(f.waiting[:0], Event{Kind: EventGap})
	}
	f.waiting = append(f.waiting, events...)
	if !f.telling {
		f.telling = true
		go f.tell()
	}
}

// tell tells what waits until nothing does.
func (f *Feed) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 {
		batch := f.waiting
		f.waiting = nil
		for _, e := range batch {
			f.tellLocked(e)
		}
	}
	f.telling = false
}

// tellLocked tells one event, without f.mu while somebody is told.
func (f *Feed) tellLocked(e Event) {
	all := make([]*func(Event), 0, len(f.listeners))
	for told := range f.listeners {
		all = append(all, told)
	}
	for _, told := range all {
		if _, listens := f.listeners[told]; listens {
			f.mu.Unlock()
			(*told)(e)
			f.mu.Lock()
		}
	}
}
