package leasedoor

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// holds are the leases that streams of this server hold, or whose streams were closed a
// moment ago. INVARIANT I11: what nobody holds is forgotten.
type holds struct {
	mu   sync.Mutex // guards the rest, and what each hold says that it does
	all  map[driver.LeaseID]*hold
	left bool // the server drains: nobody takes a lease any more
}

// A hold is one lease. Of several streams with the same key, the latest has it.
type hold struct {
	holds *holds
	id    driver.LeaseID

	turn sync.Mutex // for whoever asks the store about the lease, taken before holds.mu

	// holds.mu guards the rest.
	users  int
	stream *stream         // which has the lease; nil if none has
	lease  *holdfast.Lease // of the stream; nil if the client renews
}

// take returns the hold of a lease ID. Whoever is done with it calls drop.
func (k *holds) take(id driver.LeaseID) *hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.all[id]
	if h == nil {
		if k.all == nil {
			k.all = map[driver.LeaseID]*hold{}
		}
		h = &hold{holds: k, id: id}
		k.all[id] = h
	}
	h.users++
	return h
}

func (k *holds) drop(h *hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(k.all, h.id)
	}
}

// errMoved says that the server drains.
var errMoved = errors.New("the server drains")

// attach makes s the stream that holds the lease that it was granted. An earlier stream
// with the same key ends, and its lease goes on. The lease is nil if the client renews.
func (h *hold) attach(s *stream) (*holdfast.Lease, error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	lease, err := h.inherit()
	if err != nil {
		return nil, err
	}
	if s.form.clientRenews {
		if lease != nil {
			_ = lease.Leave()
		}
		h.set(s, nil)
		return nil, nil
	}
	if lease == nil || !lease.Valid() {
		// Its deadline counts from a request of this client, which renews it in batches
		// with all others, and hears of its loss. INVARIANT I3.
		if lease, err = s.adopt(); err != nil {
			return nil, err
		}
	}
	h.set(s, lease)
	return lease, nil
}

// inherit ends the stream that has the lease, if there is one, and returns the lease.
func (h *hold) inherit() (*holdfast.Lease, error) {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	if h.holds.left {
		return nil, errMoved
	}
	lease := h.lease
	if h.stream != nil {
		h.stream.tell(&ending{event: "moved"})
	}
	h.stream, h.lease = nil, nil
	return lease, nil
}

func (h *hold) set(s *stream, lease *holdfast.Lease) {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	h.stream, h.lease = s, lease
}

// detach takes the lease away from s. It reports false if s has it no more.
func (h *hold) detach(s *stream) bool {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	if h.stream != s {
		return false
	}
	h.stream, h.lease = nil, nil
	return true
}

// held reports whether a stream has the lease, or the server drains.
func (h *hold) held() bool {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	return h.stream != nil || h.holds.left
}

// adopt makes the lease that was granted one of the server's client.
func (s *stream) adopt() (*holdfast.Lease, error) {
	// The lease keeps the values of the context, of which nobody needs any.
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return s.door.house.Client.Adopt(ctx, s.req.Name, s.req.LeaseID, &holdfast.AdoptOptions{
		Token: s.grant.token, Mode: s.req.Mode, Limit: s.req.Limit, Permits: s.req.Permits, TTL: s.req.TTL,
	})
}

// end ends the stream that has the lease, because somebody else has ended the lease or
// said that it is over.
func (k *holds) end(id driver.LeaseID, e *ending) {
	k.mu.Lock()
	h := k.all[id]
	if h == nil || h.stream == nil {
		k.mu.Unlock()
		return
	}
	h.stream.tell(e)
	lease := h.lease
	h.stream, h.lease = nil, nil
	k.mu.Unlock()
	if lease != nil {
		_ = lease.Leave()
	}
}

// leave leaves all leases, so that they can be continued at another server, and takes no
// more of them. When it returns, the client of this server has none of them.
func (k *holds) leave() {
	k.mu.Lock()
	k.left = true
	all := make([]*hold, 0, len(k.all))
	for _, h := range k.all {
		all = append(all, h)
	}
	k.mu.Unlock()
	for _, h := range all {
		h.leave()
	}
}

// leave leaves the lease. Its stream notices by itself that the server drains.
func (h *hold) leave() {
	h.turn.Lock() // somebody may be adopting it
	defer h.turn.Unlock()
	h.holds.mu.Lock()
	lease := h.lease
	h.holds.mu.Unlock()
	if lease != nil {
		_ = lease.Leave()
	}
}

// told hears of losses, for the streams whose clients renew: the others hear of them from
// their leases.
func (k *holds) told(loss driver.Loss) {
	if loss.LeaseID == "" {
		return
	}
	k.mu.Lock()
	h := k.all[loss.LeaseID]
	waits := h != nil && h.stream != nil && h.lease == nil
	k.mu.Unlock()
	if waits {
		k.end(loss.LeaseID, lossOf(loss.Err))
	}
}
