package sqlitelock

import (
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
)

// A message is news for those who watch a lease ID.
type message struct {
	id driver.LeaseID
	driver.Notice
}

// Watch implements driver.Queuer. Who hands a lock over in this engine tells
// at once, who does it elsewhere through the bell.
func (e *Engine) Watch(id driver.LeaseID) driver.Watch {
	return e.watches.add(id)
}

// send sends messages to the watches, or rings for those who wait elsewhere.
func (e *Engine) send(messages []message) {
	var elsewhere []driver.LeaseID
	for _, m := range messages {
		if !e.watches.tell(m) {
			elsewhere = append(elsewhere, m.id)
		}
	}
	if len(elsewhere) > 0 {
		e.bell.ring(elsewhere)
	}
}

// A watch is one caller's interest in one lease ID.
type watch struct {
	all *watches
	id  driver.LeaseID
	c   chan driver.Notice // holds one
}

func (w *watch) C() <-chan driver.Notice { return w.c }

func (w *watch) Stop() { w.all.remove(w) }

// send puts news into the channel, from which only the caller receives. Notice
// that it has not received gives way, but a grant only to a grant.
func (w *watch) send(notice driver.Notice) {
	select {
	case w.c <- notice:
		return
	default:
	}
	select {
	case old := <-w.c:
		if notice.Token == 0 {
			notice = old
		}
	default: // it was received just now
	}
	w.c <- notice // there is room: sending is guarded by all.mu
}

// A sight is what there is to know of a lease ID.
type sight struct {
	token uint64 // of its lease; 0 if it has none
	looks int64  // how often it was told to look while it was queued; -1 if it has no place
}

// An interest is that of all watches of one lease ID.
type interest struct {
	name    string // which it asked for; "" until then
	seen    sight  // at the last look
	watches map[*watch]struct{}
}

// watches are those of one engine.
type watches struct {
	mu   sync.Mutex
	byID map[driver.LeaseID]*interest
}

func (a *watches) add(id driver.LeaseID) *watch {
	w := &watch{all: a, id: id, c: make(chan driver.Notice, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil {
		a.byID = map[driver.LeaseID]*interest{}
	}
	if a.byID[id] == nil {
		a.byID[id] = &interest{seen: sight{looks: -1}, watches: map[*watch]struct{}{}}
	}
	a.byID[id].watches[w] = struct{}{}
	return w
}

func (a *watches) remove(w *watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.byID[w.id]
	if i == nil {
		return
	}
	delete(i.watches, w)
	if len(i.watches) == 0 {
		delete(a.byID, w.id)
	}
}

// asks notes which name id asks for. From now on its bell is heeded.
func (a *watches) asks(id driver.LeaseID, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.byID[id]; i != nil {
		i.name = name
	}
}

// waits notes that id has got a place, unless its bell was faster.
func (a *watches) waits(id driver.LeaseID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.byID[id]; i != nil && i.seen == (sight{looks: -1}) {
		i.seen.looks = 0
	}
}

// tell sends a message, and reports whether anybody here watches its lease ID.
func (a *watches) tell(m message) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.byID[m.id]
	if i == nil {
		return false
	}
	i.tell(m.Notice)
	return true
}

func (i *interest) tell(notice driver.Notice) {
	for w := range i.watches {
		w.send(notice)
	}
}

// tellAll tells everybody to look.
func (a *watches) tellAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.byID {
		i.tell(driver.Notice{})
	}
}

// asked returns the lease IDs that heeds accepts, with their names.
func (a *watches) asked(heeds func(id driver.LeaseID) bool) map[driver.LeaseID]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[driver.LeaseID]string{}
	for id, i := range a.byID {
		if i.name != "" && heeds(id) {
			names[id] = i.name
		}
	}
	return names
}

// seen returns what there was to know of id at the last look.
func (a *watches) seen(id driver.LeaseID) sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.byID[id]; i != nil {
		return i.seen
	}
	return sight{}
}

// saw tells those who watch id what is new to them in what a look at it has
// found: others' lease IDs ring the same bell. It returns false, and tells
// nothing, if more is known by now than before the look.
func (a *watches) saw(id driver.LeaseID, before, now sight) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.byID[id]
	if i == nil {
		return true
	}
	if i.seen != before {
		return false
	}
	i.seen = now
	switch {
	case now.token != 0 && now.token != before.token:
		i.tell(driver.Notice{Token: now.token})
	case now.token == 0 && before.looks >= 0 && now.looks != before.looks:
		i.tell(driver.Notice{}) // the place is gone, or it is time to look
	}
	return true
}
