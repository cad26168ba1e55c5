package httplock

import (
	"context"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// askers is how many places are asked for again at the same time.
const askers = 16

// askAgain asks for all places that the server does not tell of, or that it may have told
// of when nobody heard it: it tells of those that were asked for through it. Places keep
// their order, which the store knows.
func (n *notices) askAgain(ctx context.Context, at *server) {
	var pauses ask.Backoff
	for {
		deaf := n.deaf(at)
		if len(deaf) == 0 {
			return
		}
		whole := true
		for len(deaf) > 0 {
			some := deaf[:min(len(deaf), driver.MaxBatch)]
			deaf = deaf[len(some):]
			whole = n.askFor(ctx, some) && whole
		}
		if !whole && !pauses.Sleep(ctx) || ctx.Err() != nil {
			return
		}
	}
}

// deaf returns the requests of the places of which nothing is heard from a server.
func (n *notices) deaf(at *server) (all []driver.AcquireRequest) {
	n.box.Each(func(_ driver.LeaseID, p *place) {
		if p.at != nil && (p.broken || p.at != at) {
			all = append(all, p.req)
		}
	})
	return all
}

// askFor asks for places again, and reports whether all were answered. What has become of
// them is found out first: the request must not make a new place of a lease ID that has
// lost its own. Whoever has lost it, or has been granted the lock, is told to look.
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
	// The place lasts until then at least: what comes later might make a new one.
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
		return // it goes on being deaf
	}
	if err != nil || reply.Outcome != driver.Held {
		n.look(req.LeaseID)
	}
}

// look tells whoever watches a lease ID to find out what has become of it.
func (n *notices) look(id driver.LeaseID) {
	n.box.Note(id, func(p *place) { p.at, p.broken = nil, false })
	n.box.Tell(id, driver.Notice{})
}
