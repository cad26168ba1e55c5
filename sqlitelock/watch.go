package sqlitelock

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
)

// A message is a notice for those who watch a lease ID.
type message struct {
	id driver.LeaseID
	driver.Notice
}

// Watch implements driver.Queuer. Whoever hands a lock over in this engine
// tells at once; whoever does it elsewhere rings the bell.
func (e *Engine) Watch(id driver.LeaseID) driver.Watch { return e.watches.Watch(id) }

// send sends messages to the watches, or rings for those who wait elsewhere.
func (e *Engine) send(messages []message) {
	var elsewhere []driver.LeaseID
	for _, m := range messages {
		if !e.watches.Tell(m.id, m.Notice) {
			elsewhere = append(elsewhere, m.id)
		}
	}
	if len(elsewhere) > 0 {
		e.bell.ring(elsewhere)
	}
}

// A sight is what there is to know of a lease ID.
type sight struct {
	token uint64 // of its lease; 0 if it has none
	looks int64  // 0 without a place, else 1 more than it was told to look
}

// A waiter is what is noted of a lease ID that is watched.
type waiter struct {
	name string // which it asked for; "" until then
	seen sight  // at the last look
}

// watches are those of one engine.
type watches struct{ mailbox.Box[waiter] }

// asks notes which name id asks for. From now on its bell is heeded.
func (a *watches) asks(id driver.LeaseID, name string) {
	a.Note(id, func(w *waiter) { w.name = name })
}

// waits notes that id has got a place, unless its bell was faster.
func (a *watches) waits(id driver.LeaseID) {
	a.Note(id, func(w *waiter) {
		if w.seen == (sight{}) {
			w.seen.looks = 1
		}
	})
}

// asked returns the lease IDs that heeds accepts, with their names.
func (a *watches) asked(heeds func(id driver.LeaseID) bool) map[driver.LeaseID]string {
	names := map[driver.LeaseID]string{}
	a.Each(func(id driver.LeaseID, w *waiter) {
		if w.name != "" && heeds(id) {
			names[id] = w.name
		}
	})
	return names
}

// seen returns what there was to know of id at the last look.
func (a *watches) seen(id driver.LeaseID) (last sight) {
	a.Note(id, func(w *waiter) { last = w.seen })
	return last
}

// saw tells those who watch id what a look has found, if it is new to them: the
// bell rings for other lease IDs as well. It returns false, and tells nothing, if
// more is known by now than before the look.
func (a *watches) saw(id driver.LeaseID, before, now sight) bool {
	overtaken := false
	a.Note(id, func(w *waiter) {
		if overtaken = w.seen != before; !overtaken {
			w.seen = now
		}
	})
	switch {
	case overtaken:
		return false
	case now.token != 0 && now.token != before.token:
		a.Tell(id, driver.Notice{Token: now.token})
	case now.token == 0 && before.looks > 0 && now.looks != before.looks:
		a.Tell(id, driver.Notice{}) // the place is gone, or it is time to look
	}
	return true
}
