package httplock

import (
	"context"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// stream is that on which an engine hears of its places and of leases that are over.
// It is opened when there is first a place, or a lease for longer than short work takes,
// and then stays open. It is always at the server that is asked: a server tells of the
// places that were asked for through it.
type notices struct {
	engine *Engine
	start  sync.Once
	losses driver.Losses
	box    mailbox.Box[place]
	moves  chan struct{} // holds one: another server is asked
}

// A place is what the engine knows of a lease ID that somebody watches.
type place struct {
	req    driver.AcquireRequest // the last that got a place
	at     *server               // that was asked; nil: there is no place
	broken bool                  // notices may have been lost since
	moved  bool                  // it was asked for by the engine itself, so that a notice may be about an earlier place
}

func (n *notices) init(e *Engine) { n.engine, n.moves = e, make(chan struct{}, 1) }

// Watch implements driver.Queuer.
func (e *Engine) Watch(id driver.LeaseID) driver.Watch { return e.notices.box.Watch(id) }

// OnLoss implements driver.LossTeller.
func (e *Engine) OnLoss(told func(driver.Loss)) (stop func()) { return e.notices.losses.OnLoss(told) }

// granted is told of n grants.
func (n *notices) granted(leases int) {
	if n.engine.capable.Losses && leases > 0 {
		n.losses.Granted(leases, n.listen)
	}
}

// ended is told that a lease was given back.
func (n *notices) ended() { n.losses.Ended() }

// placed is told that a request has a place, by a server.
func (n *notices) placed(req driver.AcquireRequest, at *server) {
	watched := n.box.Note(req.LeaseID, func(p *place) { p.req, p.at, p.broken = req, at, false })
	if watched {
		n.listen()
	}
}

// left is told that a lease ID is about to be given up.
func (n *notices) left(id driver.LeaseID) { n.box.Note(id, func(p *place) { *p = place{} }) }

// listen makes sure that there is a stream. It does not block.
func (n *notices) listen() {
	n.start.Do(func() {
		if n.engine.life.Err() == nil {
			n.engine.wg.Go(n.run)
		}
	})
}

// wait keeps listen from starting what nobody waits for.
func (n *notices) wait() { n.start.Do(func() {}) }

// move says that another server is asked from now on.
func (n *notices) move() {
	select {
	case n.moves <- struct{}{}:
	default:
	}
}

// run keeps a stream open until the engine is closed. It is started by listen and waited
// for by Close.
func (n *notices) run() { reopen(n.engine.life, n.session) }

// session follows one stream. It ends when the stream breaks, and when another server is
// asked.
func (n *notices) session() error {
	e := n.engine
	ctx, cancel := context.WithCancel(e.life)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer n.lost()
	defer cancel()
	at := n.here()
	wg.Go(func() {
		select {
		case <-n.moves:
			cancel()
		case <-ctx.Done():
		}
	})
	heard := false
	return follow(ctx, e, at, form.Notices, func(m *form.Message) {
		if !heard {
			heard = true
			wg.Go(func() { n.askAgain(ctx, at) })
		}
		n.message(m)
	})
}

// here returns the server that is asked, and forgets the signals that led there.
func (n *notices) here() *server {
	for {
		at := n.engine.chosen()
		select {
		case <-n.moves:
		default:
		}
		if n.engine.chosen() == at {
			return at
		}
	}
}

// lost notes that nothing is heard of the places that there are.
func (n *notices) lost() {
	n.box.Each(func(_ driver.LeaseID, p *place) { p.broken = p.at != nil })
}

// message does what a line says.
func (n *notices) message(m *form.Message) {
	switch {
	case m.Loss != nil:
		n.losses.Tell(m.Loss.Driver())
	case m.LeaseID != "":
		n.tell(m.LeaseID, m.Token)
	}
}

// tell tells whoever watches a lease ID. If the engine itself has asked for the place
// again, only the store can tell whether the notice is about this place or about an
// earlier one of the same lease ID, whose lease may be over.
func (n *notices) tell(id driver.LeaseID, token uint64) {
	n.box.Note(id, func(p *place) {
		if p.moved {
			token = 0
		}
	})
	n.box.Tell(id, driver.Notice{Token: token})
}
