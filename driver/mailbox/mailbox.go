// Package mailbox keeps the watches of an engine: who listens for notices of
// which lease ID, and what each has not received yet. It is for engines that
// have a queue; see driver.Queuer.
//
// An engine keeps one [Box]. Its Watch is the box's, and wherever it serves a
// queue, or hears that another process did, it calls Tell. That is all that a
// simple engine needs. One that reads its notices from elsewhere also notes
// what it knows of each lease ID that is watched, with Note and Each.
//
// # Concurrency
//
// A Box is safe for concurrent use. Its mutex is held for a few steps only and
// never while somebody receives, so it may be used under the engine's own.
package mailbox

import (
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Box has the watches of one engine. The zero Box is ready to use.
//
// N is what the engine notes of a lease ID: it is zero when the first watch
// begins, and forgotten when the last one stops. An engine that notes nothing
// takes struct{}.
type Box[N any] struct {
	mu   sync.Mutex // guards the rest, and sending to the watches
	byID map[lockinfo.LeaseID]*interest[N]
}

// An interest has the watches of one lease ID.
type interest[N any] struct {
	note    N
	watches *watch[N] // a list, the latest first
	first   watch[N]  // the first watch; most lease IDs have no other
}

// A watch belongs to one caller. Most callers get what they want at once, and never
// listen: then there is no channel.
type watch[N any] struct {
	box *Box[N]
	id  lockinfo.LeaseID

	// The mutex of the box guards the rest.
	next   *watch[N]
	c      chan driver.Notice // holds one; nil until somebody listens
	told   bool               // before that, and which notice
	unread driver.Notice
}

// Watch implements driver.Queuer.
func (b *Box[N]) Watch(id lockinfo.LeaseID) driver.Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID == nil {
		b.byID = map[lockinfo.LeaseID]*interest[N]{}
	}
	i := b.byID[id]
	var w *watch[N]
	if i == nil {
		i = &interest[N]{}
		w, b.byID[id] = &i.first, i
	} else {
		w = &watch[N]{}
	}
	w.box, w.id, w.next = b, id, i.watches
	i.watches = w
	return w
}

// C implements driver.Watch.
func (w *watch[N]) C() <-chan driver.Notice {
	w.box.mu.Lock()
	defer w.box.mu.Unlock()
	if w.c == nil {
		if w.c = make(chan driver.Notice, 1); w.told {
			w.c <- w.unread
		}
	}
	return w.c
}

// Stop implements driver.Watch. Other watches of the lease ID go on.
func (w *watch[N]) Stop() {
	b := w.box
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.byID[w.id]
	if i == nil {
		return // stopped before
	}
	for p := &i.watches; *p != nil; p = &(*p).next {
		if *p == w {
			*p = w.next
			break
		}
	}
	if i.watches == nil {
		delete(b.byID, w.id)
	}
}

// Tell sends a notice to all who watch id, and reports whether anybody does.
// It does not block.
func (b *Box[N]) Tell(id lockinfo.LeaseID, notice driver.Notice) (watched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.byID[id]
	if i == nil {
		return false
	}
	i.tell(notice)
	return true
}

// TellAll tells everybody to send a Refresh: notices may have been lost.
func (b *Box[N]) TellAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.byID {
		i.tell(driver.Notice{})
	}
}

func (i *interest[N]) tell(notice driver.Notice) {
	for w := i.watches; w != nil; w = w.next {
		w.tell(notice)
	}
}

// tell sends a notice, in place of one that was not received. A grant is only
// replaced by a grant: otherwise the waiter would not hear of its lease, and would
// need one more request to find it.
func (w *watch[N]) tell(notice driver.Notice) {
	if unread, told := w.take(); told && notice.Token == 0 {
		notice = unread
	}
	if w.c == nil {
		w.told, w.unread = true, notice
	} else {
		w.c <- notice // there is room: only the owner of box.mu sends
	}
}

// take takes back what was not received.
func (w *watch[N]) take() (unread driver.Notice, told bool) {
	if w.c == nil {
		return w.unread, w.told
	}
	select {
	case unread = <-w.c:
		return unread, true
	default:
		return unread, false
	}
}

// Note calls do with the note of id, if anybody watches it, and reports
// whether anybody does. No other call of the box comes between; do must not
// make one.
func (b *Box[N]) Note(id lockinfo.LeaseID, do func(note *N)) (watched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.byID[id]
	if i == nil {
		return false
	}
	do(&i.note)
	return true
}

// Each calls do with every lease ID that is watched, in no particular order,
// and what is noted of it. No other call of the box comes between; do must not
// make one.
func (b *Box[N]) Each(do func(id lockinfo.LeaseID, note *N)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, i := range b.byID {
		do(id, &i.note)
	}
}
