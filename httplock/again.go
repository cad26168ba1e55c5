package httplock

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// askers is how many requests askFor repeats at the same time.
const askers = 16

// askAgain repeats the request for each place whose notices another server sends, or whose
// notices may have been lost with a broken stream. A server sends notices only for places that
// were requested through it. The store keeps the order of the places.
func (n *notices) askAgain(ctx context.Context, at *server) {
	var pauses ask.Backoff
	for {
		deaf := n.deaf(at)
		if len(deaf) == 0 {
			return
		}
		whole := true
		for some := range slices.Chunk(deaf, driver.MaxBatch) {
			whole = n.askFor(ctx, some) && whole
		}
		if !whole && !pauses.Sleep(ctx) || ctx.Err() != nil {
			return
		}
	}
}

// deaf returns the requests for the places that get no notices from the server at.
func (n *notices) deaf(at *server) (all []driver.AcquireRequest) {
	n.box.Each(func(_ lockinfo.LeaseID, p *place) {
		if p.at != nil && (p.broken || p.at != at) {
			all = append(all, p.req)
		}
	})
	return all
}

// askFor repeats the requests for places and reports whether all were answered. It refreshes
// them first: the request must not make a new place for a lease ID that has lost its own.
// The waiter of a lost place, or of a grant, gets a notice to look.
func (n *notices) askFor(ctx context.Context, reqs []driver.AcquireRequest) (whole bool) {
	refreshes := make([]driver.RefreshRequest, len(reqs))
	for i, r := range reqs {
		refreshes[i] = driver.RefreshRequest{Name: r.Name, LeaseID: r.LeaseID, WaiterTTL: r.WaiterTTL}
	}
	replies := n.engine.Refresh(ctx, refreshes)
	whole = true
	limit := make(chan struct{}, askers)
	var wg sync.WaitGroup
	for i, reply := range replies {
		switch {
		case reply.Err == nil && reply.Outcome == driver.Held:
			limit <- struct{}{}
			wg.Go(func() {
				n.askForOne(ctx, reqs[i])
				<-limit
			})
		case reply.Err == nil, driver.Permanent(reply.Err):
			n.look(reqs[i].LeaseID)
		default:
			whole = false
		}
	}
	wg.Wait()
	return whole
}

// askForOne repeats the request for a place.
func (n *notices) askForOne(ctx context.Context, req driver.AcquireRequest) {
	// The place lasts for at least this time. A later request might make a new one.
	ctx, cancel := context.WithTimeout(ctx, req.WaiterTTL/2)
	defer cancel()
	waits := false
	n.box.Note(req.LeaseID, func(p *place) { // unless it was given up
		waits = p.at != nil
		p.moved = true
	})
	if !waits {
		return
	}
	reply, err := n.engine.Acquire(ctx, req)
	if err != nil && !driver.Permanent(err) {
		return // the next round repeats it
	}
	if err != nil || reply.Outcome != driver.Held {
		n.look(req.LeaseID)
	}
}

// look sends the waiter a notice without a token, so that it sends a Refresh.
func (n *notices) look(id lockinfo.LeaseID) {
	n.box.Note(id, func(p *place) { p.at, p.broken = nil, false })
	n.box.Tell(id, driver.Notice{})
}
