package httplock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// notices receives the notices about places, and the losses of leases, from a stream. The
// stream is opened for the first place, or for the first lease that outlasts
// driver.LossStart, and stays open. It is always at the current server: a server sends
// notices only for places that were requested through it.
type notices struct {
	engine *engine
	start  sync.Once
	losses driver.Losses
	box    mailbox.Box[place]
	leave  atomic.Pointer[context.CancelFunc] // ends the stream when the current server changes
}

// A place is the state of a watched lease ID.
type place struct {
	req    driver.AcquireRequest // the last request that got a place
	at     *server               // that replied with the place; nil without a place
	broken bool                  // notices may have been lost since
	moved  bool                  // the engine itself repeated the request: a notice may be about an earlier place
}

// Watch implements driver.Queuer.
func (e *engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.notices.box.Watch(id) }

// OnLoss implements driver.LossTeller.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) {
	return e.notices.losses.OnLoss(listener)
}

// granted counts n grants.
func (n *notices) granted(leases int) {
	if n.engine.capable.Losses && leases > 0 {
		n.losses.Granted(leases, n.listen)
	}
}

// placed notes that a request got a place at a server.
func (n *notices) placed(req driver.AcquireRequest, at *server) {
	req.First = false // a repeat is no longer the first request
	watched := n.box.Note(req.LeaseID, func(p *place) { p.req, p.at, p.broken = req, at, false })
	if watched {
		n.listen()
	}
}

// listen makes sure that there is a stream. It does not block.
func (n *notices) listen() {
	n.start.Do(func() {
		if n.engine.life.Err() == nil {
			n.engine.wg.Go(n.run)
		}
	})
}

// move ends the stream, because the current server has changed.
func (n *notices) move() {
	if leave := n.leave.Load(); leave != nil {
		(*leave)()
	}
}

// run keeps a stream open until the engine is closed. Close waits for it.
func (n *notices) run() { reopen(n.engine.life, n.session) }

// session follows one stream until it breaks, or the current server changes.
func (n *notices) session() error {
	e := n.engine
	ctx, cancel := context.WithCancel(e.life)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer n.box.Each(func(_ lockinfo.LeaseID, p *place) { p.broken = p.at != nil }) // their notices may be missing
	defer cancel()
	e.chosen() // may change the server; later changes end this stream
	n.leave.Store(&cancel)
	at := e.chosen()
	heard := false
	return follow(ctx, e, at, form.Notices, func(m *form.Message) {
		if !heard {
			heard = true
			wg.Go(func() { n.askAgain(ctx, at) })
		}
		n.message(m)
	})
}

// message handles one line. If the engine itself has repeated the request for a place, a
// notice may be about an earlier place of the same lease ID, whose lease has ended. So message
// drops the token, and the waiter sends a Refresh.
func (n *notices) message(m *form.Message) {
	if m.Loss != nil {
		n.losses.Tell(m.Loss.Driver())
	}
	if m.LeaseID == "" {
		return
	}
	token := m.Token
	n.box.Note(m.LeaseID, func(p *place) {
		if p.moved {
			token = 0
		}
	})
	n.box.Tell(m.LeaseID, driver.Notice{Token: token})
}
