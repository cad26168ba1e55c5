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

// handOn leaves a lease, and has another host adopt it, which asks until it is told
// either way. It returns the lease that is to be released: that of the other host, under
// which there was more work, or else the old one, which is over.
func (w *worker) handOn(l *holdfast.Lease) *holdfast.Lease {
	mode, limit, permits := l.Mode(), l.Limit(), l.Permits()
	w.leaves(l)
	if err := l.Leave(); err != nil {
		w.note("%s: lease %s was over before it could be left: %v", w.name, short(l.ID()), err)
		return l
	}
	opts := &holdfast.AdoptOptions{Token: l.Token(), Mode: mode, Limit: limit, Permits: permits, TTL: w.plan.ttl}
	for {
		p := w.peers[w.rand.IntN(len(w.peers))]
		ctx, cancel := context.WithTimeout(w.final, between(w.rand, 20*time.Millisecond, 2*time.Second))
		adopted, err := p.client.Adopt(ctx, l.Name(), l.ID(), opts)
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
