package streamdoor

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// hungUp handles the lease after the end of the connection: it releases the lease, now or
// later, or lets it expire. The lease is nil if the server does not renew it.
func (s *stream) hungUp(h *hold, lease *holdfast.Lease) {
	closed, ctx := time.Now(), context.WithoutCancel(s.R.Context())
	leave(lease)
	if s.draining() {
		// INVARIANT I1: this server may have closed the connection, at the end of its
		// patience with a slow reader. The client may continue at another server.
		return
	}
	switch s.onClose() {
	case closeReleases:
		s.release(ctx)
	case closeFreesLater:
		s.freeLater(ctx, h, closed)
	}
}

// leave ends the renewals of a lease, unless it is nil. A lost lease needs none.
func leave(lease *holdfast.Lease) {
	if lease != nil {
		_, _ = lease.Leave()
	}
}

// giveUpPlace leaves the queue after the end of a direct connection. Any other place stays
// until it expires.
func (s *stream) giveUpPlace(h *hold) {
	if s.form.direct && !s.silentOnly() && !s.draining() && !h.held() {
		s.release(context.WithoutCancel(s.R.Context()))
	}
}

// draining reports whether the server is about to stop.
func (s *stream) draining() bool { return s.R.NewWork() != nil }

// silentOnly reports whether the server has given up the client although its connection is open.
func (s *stream) silentOnly() bool { return s.closed && s.R.Context().Err() == nil }

// release ends the lease, or the place, in the store. If that fails, it expires.
func (s *stream) release(ctx context.Context) {
	_ = s.door.End(ctx, s.R, s.Req.Name, s.Req.LeaseID)
}

// freeLater releases a lease when the promise of the last line has ended: by then the
// client, if it lives, has stopped. But if the client has continued with the same key at
// another server, the lease must stay.
//
// INVARIANT I1 for a client that continues: every server renews the leases that it holds at
// least once in each quiet time (holdTimes.stale), and a promise is longer by a fifth. So if
// another server holds the lease when the promise ends, the expiry has moved since the first
// look, right after the close. In doubt the lease is left to expire.
func (s *stream) freeLater(ctx context.Context, h *hold, closed time.Time) {
	tolerance := s.times.tolerance()
	first, ok := s.expiry(ctx, tolerance)
	if !ok || first.answered.Sub(closed) > tolerance {
		return
	}
	holds := &s.door.holds
	holds.take(h.id)
	time.AfterFunc(time.Until(closed.Add(s.times.promise())), func() {
		defer holds.drop(h)
		h.turn.Lock() // a stream with the same key waits, and finds the lease released
		defer h.turn.Unlock()
		if h.held() {
			return
		}
		_ = s.R.Guard(func() { // otherwise it expires
			if now, ok := s.expiry(ctx, lease.RequestTimeout); ok && now.latest().Sub(first.earliest()) <= tolerance {
				s.release(ctx)
			}
		})
	})
}

// An expiry is when a lease ends in the store, according to one look.
type expiry struct {
	lease.Holding
	answered time.Time
}

func (e expiry) earliest() time.Time { return e.Ends() }
func (e expiry) latest() time.Time   { return e.answered.Add(e.ExpiresIn) }

// expiry looks up when the lease ends. ok is false if the store does not answer in time, or
// has no such lease.
func (s *stream) expiry(ctx context.Context, limit time.Duration) (e expiry, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := s.door.Holding(ctx, s.Req.Name, s.Req.LeaseID)
	return expiry{h, time.Now()}, err == nil && h.ExpiresIn != lockinfo.Never
}
