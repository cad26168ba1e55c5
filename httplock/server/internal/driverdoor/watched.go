package driverdoor

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A watched is a lease ID whose notices go to a session. It begins with the acquire that
// requests a place, and lasts while the place is refreshed through this server.
type watched struct {
	session *session
	id      lockinfo.LeaseID
	watch   driver.Watch
	done    chan struct{} // closed at its end
	leave   func()        // stops counting it for the limits of the caller

	// The mutex of the desk guards the rest.
	asking int         // requests under way that may get a place
	until  time.Time   // when the place ends, unless it is refreshed; zero without a place
	expiry *time.Timer // fires at until; nil before a goroutine follows
}

// An asking is one request that may get a place. The zero asking is a request that cannot.
type asking struct {
	of  *watched
	ttl time.Duration
}

// asks must be called before an acquire is sent. From then on the notices for its lease ID are
// kept. It fails if the caller has too many places.
func (d *desk) asks(v *visit, req driver.AcquireRequest) (asking, error) {
	key, ok := clientOf(v.Request)
	if !req.Queue || !ok {
		return asking{}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life.Err() != nil {
		return asking{}, nil
	}
	s := d.sessionLocked(key)
	w := s.watched[req.LeaseID]
	if w == nil {
		leave, err := v.House.Limits.Waiter(v.Caller)
		if err != nil {
			s.leaveLocked()
			return asking{}, err
		}
		w = &watched{
			session: s, id: req.LeaseID, watch: v.House.Features.Queuer.Watch(req.LeaseID), done: make(chan struct{}), leave: leave,
		}
		s.watched[req.LeaseID] = w
	}
	w.asking++
	return asking{w, req.WaiterTTL}, nil
}

// answered notes the reply. After an error that is not definite there may be a place.
func (a asking) answered(reply driver.AcquireReply, err error) {
	if err == nil && reply.Outcome == driver.Held && reply.Place > 0 || err != nil && !driver.Definite(err) {
		a.end(time.Now().Add(a.ttl))
		return
	}
	a.refused()
}

// refused notes that the request got no place.
func (a asking) refused() { a.end(time.Time{}) }

func (a asking) end(until time.Time) {
	w := a.of
	if w == nil {
		return
	}
	d := w.session.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	w.asking--
	w.lastsLocked(until)
	w.settleLocked()
}

// lastsLocked notes that the place lasts at least until this time, or that there is no place
// if it is zero. An earlier time does not shorten the place.
func (w *watched) lastsLocked(until time.Time) {
	if until.IsZero() || until.After(w.until) {
		w.until = until
	}
}

// settleLocked begins to follow the lease ID, or ends it if there is no place.
func (w *watched) settleLocked() {
	d, left := w.session.desk, time.Until(w.until)
	switch {
	case w.asking > 0: // the end of the request settles it
	case left <= 0:
		w.endLocked()
	case w.expiry != nil:
		w.expiry.Reset(left)
	case d.life.Err() == nil:
		w.expiry = time.AfterFunc(left, w.settle)
		d.wg.Go(w.follow)
	}
}

func (w *watched) settle() {
	d := w.session.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	w.settleLocked()
}

// endLocked ends the lease ID. Earlier notices are still sent.
func (w *watched) endLocked() {
	if w.session.watched[w.id] != w {
		return // ended before
	}
	delete(w.session.watched, w.id)
	close(w.done)
	w.leave()
	if w.expiry == nil {
		w.watch.Stop()
	} else {
		w.expiry.Stop()
	}
	w.session.leaveLocked()
}

// follow passes notices on until the lease ID ends, or the desk is closed.
func (w *watched) follow() {
	d := w.session.desk
	defer w.watch.Stop()
	for {
		select {
		case notice := <-w.watch.C():
			w.session.backlog.tell(w.id, notice)
		case <-w.done:
			select {
			case notice := <-w.watch.C():
				w.session.backlog.tell(w.id, notice)
			default:
			}
			return
		case <-d.life.Done():
			return
		}
	}
}

// refreshed notes the reply about a place. A place that was granted the lock keeps its time:
// it is not refreshed again, and its end needs no notice.
func (d *desk) refreshed(v *visit, req driver.RefreshRequest, reply driver.RefreshReply) {
	d.change(v, req.LeaseID, func(w *watched) {
		switch {
		case driver.Permanent(reply.Err), req.WaiterTTL == 0:
			w.until = time.Time{}
		case reply.Err == nil && reply.Outcome == driver.Held:
			w.lastsLocked(time.Now().Add(req.WaiterTTL))
		}
	})
}

// gone notes that a lease ID was released.
func (d *desk) gone(v *visit, id lockinfo.LeaseID) {
	d.change(v, id, func(w *watched) { w.until = time.Time{} })
}

// change changes a watched lease ID of the caller's client, if there is one.
func (d *desk) change(v *visit, id lockinfo.LeaseID, do func(w *watched)) {
	key, ok := clientOf(v.Request)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[key]; s != nil {
		if w := s.watched[id]; w != nil {
			do(w)
			w.settleLocked()
		}
	}
}
