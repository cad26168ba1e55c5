package enginetest_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// serve hands the lock over to the places at the head of the queue.
func (e *engine) serve(n *entry, now time.Time) {
	for i := 0; i < len(n.queue); {
		p := n.queue[i]
		switch fits := e.fits(n, p.req, now); {
		case !fits && e.fault == "small requests overtake in the queue":
			i++
			continue
		case !fits:
			return
		case e.fault == "handed-over place stays in the queue":
			i++
		default:
			n.queue = slices.Delete(n.queue, i, i+1)
		}
		e.handOver(n, p, now)
		if e.fault == "one waiter is served at a time" {
			return
		}
	}
}

// handOver grants p a lease.
func (e *engine) handOver(n *entry, p *place, now time.Time) {
	expiry := p.until
	switch e.fault {
	case "waiter is dropped instead of served":
		return
	case "hand-over forgets the holder":
		p.req.Holder = lockinfo.Holder{}
	case "hand-over ignores MinToken":
		p.req.MinToken = 0
	case "handed-over lease has the whole TTL":
		expiry = now.Add(p.req.TTL)
	case "handed-over lease has the whole WaiterTTL":
		expiry = now.Add(p.req.WaiterTTL)
	case "handed-over lease never ends":
		expiry = now.Add(24 * time.Hour)
	}
	last := n.last
	l := e.grant(n, p.req, now, expiry)
	e.noteHandOver(n, p, l, now)
	switch e.fault {
	case "hand-over keeps since of the place":
		l.granted = p.since
	case "hand-over does not note when":
		l.granted = time.Time{}
	}
	if e.fault == "hand-over repeats the last token" {
		l.token, n.last = last, last
	}
	if e.fault == "news goes to the engine that asked first" {
		for w := range e.watches {
			w.deaf = w.engine != p.by
		}
	}
	e.tell(p.req.LeaseID, driver.Notice{Token: l.token})
}

// leave gives up the place of id.
func (e *engine) leave(n *entry, id lockinfo.LeaseID, now time.Time) {
	n.queue = slices.DeleteFunc(n.queue, func(p *place) bool {
		leaves := e.same(p.req.LeaseID, id, "Leave")
		if leaves {
			e.notePlace(lockinfo.HistoryGaveUp, n, p, now)
		}
		return leaves
	})
}

// place returns the index of id's place for a method, or -1.
func (s *store) place(n *entry, id lockinfo.LeaseID, method string) int {
	return slices.IndexFunc(n.queue, func(p *place) bool { return s.same(p.req.LeaseID, id, method) })
}

// enqueue creates or renews the place of req, and returns its number.
func (e *engine) enqueue(n *entry, req driver.AcquireRequest, now time.Time) int {
	i := e.place(n, req.LeaseID, "Queue")
	if i >= 0 && e.fault == "repeat goes to the end of the queue" {
		n.queue = slices.Delete(n.queue, i, i+1)
		i = -1
	}
	if i < 0 {
		if e.fault != "holder is not copied" && e.fault != "holder of a place is not copied" {
			req.Holder.Labels = maps.Clone(req.Holder.Labels)
		}
		p := &place{req: req, since: now, by: e}
		i = len(n.queue)
		switch e.fault {
		case "last comes first":
			i = 0
		case "place is given in two steps":
			e.pause(time.Millisecond)
		}
		n.queue = slices.Insert(n.queue, i, p)
		e.notePlace(lockinfo.HistoryQueued, n, p, now)
	}
	p := n.queue[i]
	if e.fault != "place is not renewed by a repeat" || p.until.IsZero() {
		p.until = now.Add(req.WaiterTTL)
	}
	if e.fault == "repeat waits since now" {
		p.since = now
	}
	return i + 1
}

func (e *engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	replies := make([]driver.RefreshReply, len(reqs))
	now, err := e.enterFor(ctx, e.caps.Queue, "Refresh")
	if err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}
	defer e.mu.Unlock()
	for i, req := range reqs {
		replies[i].AcquireReply, replies[i].Err = e.refresh(req, now)
		if e.fault == "Refresh ends at the first failure" && replies[i].Err != nil || e.fault == "Refresh ends after 100" && i == 99 {
			for j := i + 1; j < len(reqs); j++ {
				replies[j].Err = driver.ErrLost
			}
			break
		}
	}
	if e.fault == "Refresh answers the other way round" {
		slices.Reverse(replies)
	}
	return replies
}

func (e *engine) refresh(req driver.RefreshRequest, now time.Time) (reply driver.AcquireReply, err error) {
	var n *entry
	if e.fault == "Refresh notices no expiry" {
		n = e.purged(req.Name, now)
	} else {
		n = e.settled(req.Name, now)
	}
	if l := e.find(n, req.LeaseID, "Refresh"); l != nil {
		if until := now.Add(req.WaiterTTL); until.After(l.expiry) && e.fault == "Refresh lengthens leases" ||
			e.fault == "Refresh shortens leases" {
			l.expiry = until
		}
		if e.fault == "Refresh for nothing ends the lease" && req.WaiterTTL == 0 {
			l.expiry = now
		}
		if e.fault == "Refresh does not tell the grant" {
			return reply, driver.ErrLost
		}
		return driver.AcquireReply{Outcome: driver.Granted, Token: l.token}, nil
	}
	i := e.place(n, req.LeaseID, "Refresh")
	if i < 0 {
		return e.refreshLost(n, req, now)
	}
	if req.WaiterTTL == 0 {
		return e.vacate(n, req.LeaseID, now), nil
	}
	p := n.queue[i]
	if until := now.Add(req.WaiterTTL); until.After(p.until) && e.fault != "Refresh leaves places" ||
		e.fault == "Refresh shortens places" {
		p.until = until
	}
	reply = e.blocker(n, now)
	reply.Place = i + 1
	switch e.fault {
	case "Refresh does not say the place":
		reply.Place = 1
	case "Refresh does not say by whom":
		reply.Holder, reply.ExpiresIn = lockinfo.Holder{}, 0
	case "Refresh drops the length of the queue":
		reply.Queue = 0
	case "Refresh shows the token":
		reply.Token = n.last
	}
	return reply, nil
}

// vacate gives up a place that its waiter no longer wants.
func (e *engine) vacate(n *entry, id lockinfo.LeaseID, now time.Time) driver.AcquireReply {
	if e.fault != "Refresh for nothing keeps the place" {
		e.leave(n, id, now)
	}
	if e.fault != "Refresh for nothing serves nobody" {
		e.serve(n, now)
	}
	return e.blocker(n, now)
}

// refreshLost returns the reply if id has neither a place nor a lease.
func (e *engine) refreshLost(n *entry, req driver.RefreshRequest, now time.Time) (driver.AcquireReply, error) {
	again := driver.AcquireRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.WaiterTTL, WaiterTTL: req.WaiterTTL}
	switch {
	case e.fault == "Refresh creates a place" && len(n.leases) > 0:
		e.enqueue(n, again, now)
	case e.fault == "Refresh creates a lease" && len(n.leases) == 0:
		e.grant(n, again, now, now.Add(req.WaiterTTL))
	case e.fault == "Refresh answers Held if lost":
		return e.blocker(n, now), nil
	}
	return driver.AcquireReply{}, driver.ErrLost
}

// A watch receives the notices of one lease ID.
type watch struct {
	engine *engine
	id     lockinfo.LeaseID
	c      chan driver.Notice
	deaf   bool // until the reply to its request, for a fault
}

func (e *engine) Watch(id lockinfo.LeaseID) driver.Watch {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &watch{engine: e, id: id, c: make(chan driver.Notice, 1), deaf: e.fault == "watch begins with the answer"}
	if e.fault == "news piles up" {
		w.c = make(chan driver.Notice, 100)
	}
	e.watches[w] = true
	return w
}

// tell sends a notice to the watches of id. The caller holds e.mu.
func (e *engine) tell(id lockinfo.LeaseID, notice driver.Notice) {
	if e.chatty {
		e.told++
		for _, d := range []time.Duration{300 * time.Millisecond, 400 * time.Millisecond} {
			d += time.Duration(e.told) * time.Microsecond // keeps the messages in order
			time.AfterFunc(d, func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.deliver(id, driver.Notice{})
				e.deliver(id, notice)
			})
		}
		return
	}
	switch {
	case e.fault == "news is lost", e.fault == "news of a place that is gone is lost" && notice.Token == 0:
		return
	case e.fault == "news of a grant says to look":
		notice.Token = 0
	case e.fault == "news has the token before" && notice.Token != 0:
		notice.Token--
	}
	e.deliver(id, notice)
	if e.fault == "news goes to the first of several" {
		for w := range e.watches {
			w.deaf = true
		}
	}
}

func (e *engine) deliver(id lockinfo.LeaseID, notice driver.Notice) {
	for w := range e.watches {
		if w.id != id || w.deaf || e.fault == "news stays in the engine" && w.engine != e {
			continue
		}
		notice := notice
		if len(w.c) == cap(w.c) {
			old := <-w.c
			switch {
			case e.fault == "old news is kept":
				notice = old
			case notice.Token == 0 && e.fault != "call to look replaces a grant":
				notice = old
			}
		}
		w.c <- notice
	}
}

func (w *watch) C() <-chan driver.Notice { return w.c }

func (w *watch) Stop() {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	switch w.engine.fault {
	case "Stop does nothing":
		return
	case "Stop stops every watch of the lease ID":
		for other := range w.engine.watches {
			if other.id == w.id {
				delete(w.engine.watches, other)
			}
		}
	case "Stop closes the channel":
		if w.engine.watches[w] {
			close(w.c)
		}
	}
	delete(w.engine.watches, w)
}
