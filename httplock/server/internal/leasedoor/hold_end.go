package leasedoor

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// hungUp does what the end of the connection means for the lease, which is nil if the
// server does not renew it.
func (s *stream) hungUp(h *hold, lease *holdfast.Lease) {
	ctx := context.WithoutCancel(s.r.Context())
	switch {
	case s.draining():
		// INVARIANT I1: it may be this server that closes connections, at the end of its
		// patience with those that do not read. The client may go on with the key elsewhere.
		if lease != nil {
			_ = lease.Leave()
		}
	case s.form.direct:
		if lease != nil {
			_ = lease.Leave()
		}
		s.release(ctx)
	case s.form.clientRenews:
		// The client counts from its own requests, and may go on until the lease runs out.
	default:
		closed := time.Now()
		if lease != nil {
			_ = lease.Leave()
		}
		s.freeLater(ctx, h, closed)
	}
}

// giveUpPlace does what the end of the connection means for a place in the queue: only
// where it is the end of the client the others need not wait until the place ends.
func (s *stream) giveUpPlace(h *hold) {
	if s.form.direct && !s.silentOnly() && !s.draining() && !h.held() {
		s.release(context.WithoutCancel(s.r.Context()))
	}
}

// draining reports whether the server is about to stop.
func (s *stream) draining() bool { return s.r.NewWork() != nil }

// silentOnly reports whether the client was given up although its connection is open.
func (s *stream) silentOnly() bool { return s.closed && s.r.Context().Err() == nil }

// release ends the lease, or the place, in the store. At worst it runs out.
func (s *stream) release(ctx context.Context) {
	_ = s.door.end(ctx, s.r, s.req.Name, s.req.LeaseID)
}

// freeLater releases a lease that nobody renews here any more once the client, if it
// lives, has stopped by its own rule: what the last line has promised is over then. But
// the client may have gone on with the same key elsewhere, and then the lease must stay.
//
// INVARIANT I1 for those who go on: every server renews what it holds at least once in
// each quiet time (holdTimes.stale), and a promise is longer by a tenth. So if the lease
// is held elsewhere when the promise ends, its expiry has moved by then, compared with a
// first look at the time of the close. In doubt it runs out by itself.
func (s *stream) freeLater(ctx context.Context, h *hold, closed time.Time) {
	doubt := s.times.doubt()
	first, ok := s.expiry(ctx, doubt)
	if !ok || first.answered.Sub(closed) > doubt {
		return
	}
	holds := &s.door.holds
	holds.take(h.id)
	time.AfterFunc(time.Until(closed.Add(s.times.promise())), func() {
		defer holds.drop(h)
		h.turn.Lock() // whoever comes with the same key waits, and finds the lease released
		defer h.turn.Unlock()
		if h.held() {
			return
		}
		_ = s.r.Guard(func() { // or it runs out
			if now, ok := s.expiry(ctx, requestTimeout); ok && now.latest().Sub(first.earliest()) <= doubt {
				s.release(ctx)
			}
		})
	})
}

// An expiry is when a lease ends in the store, as one look at it tells.
type expiry struct {
	sent, answered time.Time
	left           time.Duration // at some time between
}

func (e expiry) earliest() time.Time { return e.sent.Add(e.left) }
func (e expiry) latest() time.Time   { return e.answered.Add(e.left) }

// expiry looks when the lease ends. It is not ok if the store has not said so in time, or
// if there is no such lease.
func (s *stream) expiry(ctx context.Context, limit time.Duration) (e expiry, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e.sent = time.Now()
	lock, err := s.door.house.Engine.Inspect(ctx, s.req.Name)
	e.answered = time.Now()
	if err != nil {
		return e, false
	}
	for _, h := range lock.Holders {
		if s.req.LeaseID.Is(h.LeaseID) && !h.Released {
			e.left = h.ExpiresIn
			return e, h.ExpiresIn != driver.Never
		}
	}
	return e, false
}
