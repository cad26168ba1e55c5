package rediscore

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// messageLate is how much later than the answer to a refresh the message
// about the same grant may come. If it does not, the subscription is taken
// for dead: the server that has it may hang, or not be the master any more, and
// the connection shows it only after some seconds.
const messageLate = 100 * time.Millisecond

// An inbox keeps the one subscription on which an engine hears of leases that
// were handed to it, and of leases that have ended. It subscribes when the engine
// first has a place in a queue, or a lease for longer than short work takes, and
// then stays.
type inbox struct {
	listener
	id      string        // what others write to
	channel string        // of its own
	all     string        // of all inboxes
	doubt   chan struct{} // holds one signal: the subscription may be dead
	losses  driver.Losses

	box mailbox.Box[heard]

	mu    sync.Mutex                    // guards the rest; it is taken before the box's
	owed  map[lockinfo.LeaseID]struct{} // a message about a grant is to come
	made  int                           // how many subscriptions there have been
	hears bool                          // the last of them is there
}

// A heard is what the inbox knows of a lease ID that somebody watches.
type heard struct {
	waiting int  // the subscription in which it was known to wait
	granted bool // a message about a grant has come
}

func newInbox(conn Conn, space keys.Space, life context.Context) *inbox {
	id := string(lockinfo.NewLeaseID())
	return &inbox{
		listener: listener{conn: conn, life: life}, id: id, channel: space.Inboxes() + id, all: space.Inboxes() + keys.AllInboxes,
		doubt: make(chan struct{}, 1), owed: map[lockinfo.LeaseID]struct{}{},
	}
}

// listen makes sure that the engine subscribes. It does not block.
func (i *inbox) listen() { i.start(i.session) }

// session listens on one connection until it breaks.
func (i *inbox) session(session Session) error {
	broken, err := session.Subscribe(i.life, i.message, i.channel, i.all)
	if err != nil {
		return err
	}
	i.subscribed()
	defer i.deaf()
	select {
	case <-broken: //nolint:errcheck // why it broke does not matter
	case <-i.doubt:
	case <-i.life.Done():
	}
	return nil
}

// subscribed starts a new subscription's books, and tells everybody who watches
// to look: messages may have been sent before it.
func (i *inbox) subscribed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made, i.hears = i.made+1, true
	clear(i.owed)
	select {
	case <-i.doubt: // of the subscription before
	default:
	}
	i.box.TellAll()
}

func (i *inbox) deaf() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hears = false
}

// subscription returns the number of the subscription that there is now, or 0.
func (i *inbox) subscription() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.hears {
		return 0
	}
	return i.made
}

// waits notes that a place was still waiting when a request reached the store
// that was sent while there was the given subscription. So a grant to it comes
// after the subscription, which must report it.
func (i *inbox) waits(id lockinfo.LeaseID, subscription int) {
	i.box.Note(id, func(h *heard) { h.waiting = subscription })
}

// expect notes that a place was found to have been handed the lock. A waiter that
// no longer watches has received the message.
func (i *inbox) expect(id lockinfo.LeaseID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	owed := false
	i.box.Note(id, func(h *heard) { owed = i.hears && h.waiting == i.made && !h.granted })
	if !owed {
		return
	}
	i.owed[id] = struct{}{}
	subscription := i.made
	time.AfterFunc(messageLate, func() { i.miss(id, subscription) })
}

// miss gives the subscription up, if it still owes the message.
func (i *inbox) miss(id lockinfo.LeaseID, subscription int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, owed := i.owed[id]; !owed || i.made != subscription {
		return
	}
	delete(i.owed, id)
	select {
	case i.doubt <- struct{}{}:
	default:
	}
}

// message runs in the connection's reading goroutine and must not block. A
// message that makes no sense is dropped.
func (i *inbox) message(channel, message string) {
	if channel == i.all {
		i.lost(message)
		return
	}
	id, text, _ := strings.Cut(message, " ")
	if ms, ok := strings.CutPrefix(text, "0 "); ok {
		i.later(lockinfo.LeaseID(id), ms)
		return
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil || token > driver.MaxToken {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if token != 0 {
		delete(i.owed, lockinfo.LeaseID(id))
		i.box.Note(lockinfo.LeaseID(id), func(h *heard) { h.granted = true })
	}
	i.box.Tell(lockinfo.LeaseID(id), driver.Notice{Token: token})
}

// later tells a waiter to look when the lock, which is left free for other
// clients, is ours again.
func (i *inbox) later(id lockinfo.LeaseID, ms string) {
	n, err := strconv.ParseUint(ms, 10, 16)
	if err != nil {
		return
	}
	time.AfterFunc(time.Duration(n)*time.Millisecond, func() { i.box.Tell(id, driver.Notice{}) })
}

// lost runs in the connection's reading goroutine. A message that makes no
// sense is dropped.
func (i *inbox) lost(message string) {
	id, text, _ := strings.Cut(message, " ")
	var a about
	if !lockinfo.LeaseID(id).Valid() || json.Unmarshal([]byte(text), &a) != nil || driver.CheckBreak(a.Author, a.Reason) != nil {
		return
	}
	i.losses.Tell(driver.Loss{
		Name: a.Name, LeaseID: lockinfo.LeaseID(id), Err: &lockinfo.BrokenError{Author: a.Author, Reason: a.Reason},
	})
}
