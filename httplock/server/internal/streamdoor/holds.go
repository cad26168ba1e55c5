package streamdoor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// holds has the leases that streams of this server hold, or whose streams were closed a moment
// ago. INVARIANT I11: a hold without users is forgotten.
type holds struct {
	mu   sync.Mutex // guards the rest, and the fields of holds below
	all  map[lockinfo.LeaseID]*hold
	left bool // the server drains: no stream takes a lease any more
}

// A hold is one lease. Of several streams with the same key, the latest has it.
type hold struct {
	holds *holds
	id    lockinfo.LeaseID

	turn sync.Mutex // held during requests about the lease; taken before holds.mu

	// holds.mu guards the rest.
	users  int
	stream *stream         // that has the lease; nil if no stream has it
	lease  *holdfast.Lease // of the stream; nil if the client renews
}

// take returns the hold of a lease ID. The caller must call drop.
func (k *holds) take(id lockinfo.LeaseID) *hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.all[id]
	if h == nil {
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

// errMoved means that the server drains.
var errMoved = errors.New("the server drains")

// attach makes s the stream that holds the granted lease. An earlier stream with the same key
// ends, and s continues its lease. The returned lease is nil if the client renews.
func (h *hold) attach(s *stream) (*holdfast.Lease, error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	lease, err := h.inherit()
	if err != nil {
		return nil, err
	}
	if s.form.clientRenews {
		leave(lease)
		h.set(s, nil)
		return nil, nil
	}
	if lease == nil || !lease.Valid() {
		// The server's client renews an adopted lease in batches with all others, and learns
		// of its loss. The deadline counts from a request of that client. INVARIANT I3.
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

// detach takes the lease away from s. It returns false if s no longer has it.
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

// adopt makes the server's client adopt the granted lease.
func (s *stream) adopt() (*holdfast.Lease, error) {
	// The lease keeps the values of this context, and needs none of the request's.
	ctx, cancel := context.WithTimeout(context.Background(), lease.RequestTimeout)
	defer cancel()
	handle := holdfast.NewHandle(s.Req.Name, s.Req.LeaseID, s.grant.Token, s.Req.Mode)
	return s.door.House.Client.Adopt(ctx, handle, &holdfast.AdoptOptions{TTL: s.TTL(), LockDelay: s.LockDelay()})
}

// end ends the stream of a lease that has ended elsewhere. It checks the name: the caller of a
// release may know the lease ID, but have no right to the name of the stream.
func (k *holds) end(name string, id lockinfo.LeaseID, e *ending) {
	k.mu.Lock()
	h := k.all[id]
	if h == nil || h.stream == nil || h.stream.Req.Name != name {
		k.mu.Unlock()
		return
	}
	h.stream.tell(e)
	lease := h.lease
	h.stream, h.lease = nil, nil
	k.mu.Unlock()
	leave(lease)
}

// leave leaves all leases, so that another server can continue them, and k accepts no more.
// When it returns, the client of this server has no lease.
func (k *holds) leave() {
	k.mu.Lock()
	k.left = true
	all := slices.Collect(maps.Values(k.all))
	k.mu.Unlock()
	for _, h := range all {
		h.leave()
	}
}

// leave leaves the lease. Its stream notices that the server drains.
func (h *hold) leave() {
	h.turn.Lock() // a stream may be adopting it
	defer h.turn.Unlock()
	h.holds.mu.Lock()
	lease := h.lease
	h.holds.mu.Unlock()
	leave(lease)
}

// onLoss handles the notice of a loss, for streams whose clients renew. The leases of other
// streams report their loss themselves.
func (k *holds) onLoss(loss driver.Loss) {
	if loss.LeaseID == "" {
		return
	}
	k.mu.Lock()
	h := k.all[loss.LeaseID]
	waits := h != nil && h.stream != nil && h.lease == nil
	k.mu.Unlock()
	if waits {
		k.end(loss.Name, loss.LeaseID, lossOf(loss.Err))
	}
}
