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

// messageLate is how much later than the reply to a refresh the message about the same grant may
// arrive. If it does not arrive, the inbox takes the subscription for dead. The server may hang or
// no longer be the master, and the connection would fail only after some seconds.
const messageLate = 100 * time.Millisecond

// An inbox has the engine's one subscription, which reports leases that were handed over to it and
// leases that have ended. It subscribes when the engine first has a place in a queue, or a lease
// that lasts longer than short work takes, and stays subscribed.
type inbox struct {
	listener
	id      string        // engines address messages to it
	channel string        // of this inbox
	all     string        // of all inboxes
	suspect chan struct{} // holds one signal: the subscription may be dead
	losses  driver.Losses

	box mailbox.Box[heard]

	mu    sync.Mutex                    // guards the rest; it is taken before the box's
	owed  map[lockinfo.LeaseID]struct{} // leases whose message about a grant is still to come
	made  int                           // number of subscriptions so far
	hears bool                          // the latest subscription is live
}

// A heard is what the inbox knows about a lease ID that a caller watches.
type heard struct {
	name    string
	waiting int  // number of the subscription during which the place was known to wait
	granted bool // a message about the grant has arrived
}

func newInbox(conn Conn, space keys.Space, life context.Context) *inbox {
	id := string(lockinfo.NewLeaseID())
	return &inbox{
		listener: listener{conn: conn, life: life}, id: id, channel: space.Inboxes() + id, all: space.Inboxes() + keys.AllInboxes,
		suspect: make(chan struct{}, 1), owed: map[lockinfo.LeaseID]struct{}{},
	}
}

// listen starts the subscription unless it has started. It does not block.
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
	case <-i.suspect:
	case <-i.life.Done():
	}
	return nil
}

// subscribed notes a new subscription. It notifies all watches, because messages may have been sent
// before it.
func (i *inbox) subscribed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made, i.hears = i.made+1, true
	clear(i.owed)
	select {
	case <-i.suspect: // of an earlier subscription
	default:
	}
	i.box.TellAll()
}

func (i *inbox) deaf() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hears = false
}

// subscription returns the number of the live subscription, or 0 if there is none.
func (i *inbox) subscription() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.hears {
		return 0
	}
	return i.made
}

// waits notes that a place for name was still waiting when the store received a request. That request was
// sent during the given subscription, which therefore must report a later grant.
func (i *inbox) waits(name string, id lockinfo.LeaseID, subscription int) {
	i.box.Note(id, func(h *heard) { h.name, h.waiting = name, subscription })
}

// look notifies the waiters for name, because a message may have been lost.
func (i *inbox) look(name string) {
	var ids []lockinfo.LeaseID
	i.box.Each(func(id lockinfo.LeaseID, h *heard) {
		if h.name == name {
			ids = append(ids, id)
		}
	})
	for _, id := range ids {
		i.box.Tell(id, driver.Notice{})
	}
}

// expect notes that a refresh found that a place was handed the lock. If the caller no longer
// watches, it has received the message.
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

// miss gives up the subscription if it still owes the message.
func (i *inbox) miss(id lockinfo.LeaseID, subscription int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, owed := i.owed[id]; !owed || i.made != subscription {
		return
	}
	delete(i.owed, id)
	select {
	case i.suspect <- struct{}{}:
	default:
	}
}

// message runs in the connection's reading goroutine and must not block. It drops malformed
// messages.
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

// later notifies a waiter when the lock, which is left free for foreign clients, is holdfast's
// again.
func (i *inbox) later(id lockinfo.LeaseID, ms string) {
	n, err := strconv.ParseUint(ms, 10, 16)
	if err != nil {
		return
	}
	time.AfterFunc(time.Duration(n)*time.Millisecond, func() { i.box.Tell(id, driver.Notice{}) })
}

// lost handles a message about a broken lease, in the connection's reading goroutine. It drops
// malformed messages.
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
