package bell

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Message is a notice for the watches of a lease ID.
type Message struct {
	ID lockinfo.LeaseID
	driver.Notice
}

// A Sight is the state of a lease ID in the database.
type Sight struct {
	Token uint64 // of its lease; 0 if it has none
	Looks int64  // 0 without a place, else 1 + the number of notices to the place
}

// A Waiter is the state of a watched lease ID.
type Waiter struct {
	name string // the name that it has requested; "" until then
	seen Sight  // as last read
}

// Watches are the watches of one engine.
type Watches struct{ mailbox.Box[Waiter] }

// Send delivers messages to the watches, and rings b for waiters of other processes.
func (a *Watches) Send(messages []Message, b Bell) {
	var elsewhere []lockinfo.LeaseID
	for _, m := range messages {
		if !a.Tell(m.ID, m.Notice) {
			elsewhere = append(elsewhere, m.ID)
		}
	}
	b.Ring(elsewhere)
}

// Requests records that id requests name. From now on changes of its cell count.
func (a *Watches) Requests(id lockinfo.LeaseID, name string) {
	a.Note(id, func(w *Waiter) { w.name = name })
}

// Queued records that id has a place, unless that is known already.
func (a *Watches) Queued(id lockinfo.LeaseID) {
	a.Note(id, func(w *Waiter) {
		if w.seen == (Sight{}) {
			w.seen.Looks = 1
		}
	})
}

// Requested returns the lease IDs that rung accepts, with their names.
func (a *Watches) Requested(rung func(id lockinfo.LeaseID) bool) map[lockinfo.LeaseID]string {
	names := map[lockinfo.LeaseID]string{}
	a.Each(func(id lockinfo.LeaseID, w *Waiter) {
		if w.name != "" && rung(id) {
			names[id] = w.name
		}
	})
	return names
}

// Seen returns the last Sight of id.
func (a *Watches) Seen(id lockinfo.LeaseID) (last Sight) {
	a.Note(id, func(w *Waiter) { last = w.seen })
	return last
}

// Saw notifies the watches of id if now is news: a cell may have rung for another lease ID. It
// returns false, without a notice, if the Sight has changed since before was read.
func (a *Watches) Saw(id lockinfo.LeaseID, before, now Sight) bool {
	overtaken := false
	a.Note(id, func(w *Waiter) {
		if overtaken = w.seen != before; !overtaken {
			w.seen = now
		}
	})
	switch {
	case overtaken:
		return false
	case now.Token != 0 && now.Token != before.Token:
		a.Tell(id, driver.Notice{Token: now.Token})
	case now.Token == 0 && before.Looks > 0 && now.Looks != before.Looks:
		a.Tell(id, driver.Notice{}) // the place is gone, or must be refreshed
	}
	return true
}
