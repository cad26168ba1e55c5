// Package mailbox keeps the watches of an engine, and the notices that their
// callers have not received yet. It is for engines that have a queue; see
// driver.Queuer.
//
// An engine keeps one [Box]. Its Watch is the box's. Whenever it serves a
// queue, or hears that another process did, it calls Tell. A simple engine
// needs no more. An engine that reads its notices from elsewhere also keeps
// a note for each lease ID that is watched, with Note and Each.
//
// # Concurrency
//
// A Box is safe for concurrent use. It holds its mutex for a few steps only, and
// never waits for a receiver, so it may be used under the engine's own mutex.
package mailbox

import (
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Box has the watches of one engine. The zero Box is ready to use.
//
// N is the engine's note about a lease ID. It is zero when the first watch
// begins, and is dropped when the last one stops. An engine without notes
// uses struct{}.
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

// A watch belongs to one caller. Most callers get the lock at once, and never listen, so the
// channel is made only when C is called.
type watch[N any] struct {
	box *Box[N]
	id  lockinfo.LeaseID

	// The mutex of the box guards the rest.
	next    *watch[N]
	c       chan driver.Notice // has room for one; nil until C is called
	pending bool               // there is a notice in unread; used while c is nil
	unread  driver.Notice
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
		if w.c = make(chan driver.Notice, 1); w.pending {
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

// Tell sends a notice to all watches of id, and reports whether there are any.
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

// TellAll sends all watches a notice without a token, which asks for a Refresh: notices may have
// been lost.
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

// tell sends a notice. It replaces a notice that was not received, but replaces a grant only by
// a grant: otherwise the waiter would need another request to learn of its lease.
func (w *watch[N]) tell(notice driver.Notice) {
	if unread, pending := w.take(); pending && notice.Token == 0 {
		notice = unread
	}
	if w.c == nil {
		w.pending, w.unread = true, notice
	} else {
		w.c <- notice // there is room: only the owner of box.mu sends
	}
}

// take takes back the notice that was not received, if any.
func (w *watch[N]) take() (unread driver.Notice, pending bool) {
	if w.c == nil {
		return w.unread, w.pending
	}
	select {
	case unread = <-w.c:
		return unread, true
	default:
		return unread, false
	}
}

// Note calls do with the note of id if the ID is watched, and reports whether it is.
// The box is locked during the call, so do must not call the box.
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

// Each calls do with every lease ID that is watched and its note, in no particular order.
// The box is locked during the calls, so do must not call the box.
func (b *Box[N]) Each(do func(id lockinfo.LeaseID, note *N)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, i := range b.byID {
		do(id, &i.note)
	}
}
