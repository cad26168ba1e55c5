package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A peer is another host, whose process can adopt a lease.
type peer struct {
	host   *host
	client *holdfast.Client
}

// peers returns all hosts but one.
func (r *run) peers(but *host) (others []peer) {
	for i, h := range r.hosts {
		if h != but {
			others = append(others, peer{h, r.clients[i]})
		}
	}
	return others
}

// handOn leaves a lease, and has another host adopt it, which retries until it gets a reply. It
// returns the lease to release: the other host's, after more work under it, or the old one if it
// has ended.
func (w *worker) handOn(l *holdfast.Lease) *holdfast.Lease {
	w.leaves(l)
	handle, err := l.Leave()
	if err != nil {
		w.note("%s: lease %s ended before it could be left: %v", w.name, short(l.ID()), err)
		return l
	}
	for {
		p := w.peers[w.rand.IntN(len(w.peers))]
		ctx, cancel := context.WithTimeout(w.final, between(w.rand, 20*time.Millisecond, 2*time.Second))
		adopted, err := p.client.Adopt(ctx, handle, &holdfast.AdoptOptions{TTL: w.plan.ttl})
		cancel()
		w.note("%s: %s adopts lease %s: %v", w.name, p.host.name, short(l.ID()), err)
		switch {
		case err == nil:
			w.count("leases adopted")
			w.holds(fmt.Sprintf("%s at %s", w.name, p.host.name), p.host, adopted)
			w.work(context.Background(), adopted)
			return adopted
		case errors.Is(err, holdfast.ErrLost), w.final.Err() != nil:
			return l
		}
		time.Sleep(between(w.rand, 0, 50*time.Millisecond))
	}
}
