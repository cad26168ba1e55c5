package enginetest_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A chronicle contains what a store keeps for histories and feeds.
type chronicle struct {
	by     *engine // the engine that has the store locked
	number int     // the number of events that were recorded
	feeds  []*feed
	unsaid []lockinfo.HistoryEvent // events that AcquireAll may still have to remove
}

// A written is a recorded event of a name.
type written struct {
	lockinfo.HistoryEvent
	by *engine // the engine that recorded it, for a fault
	at time.Time
}

// A feed is a callback for events, registered through one engine.
type feed struct {
	engine *engine
	told   func(lockinfo.HistoryEvent)
}

// noteLease records an event of l.
func (s *store) noteLease(kind lockinfo.HistoryKind, n *entry, l *lease, now time.Time) {
	e := lockinfo.HistoryEvent{Kind: kind, Mode: n.modeOf(l), Token: l.token, Holder: s.holder(l.req)}
	switch {
	case kind == lockinfo.HistoryExpired:
		e.Held, e.Ago = l.expiry.Sub(l.granted), now.Sub(l.expiry)
		switch s.fault {
		case "expiry is not written":
			return
		case "Held of an expired lease is not noted":
			e.Held = 0
		case "expiry is dated when it is noticed":
			e.Ago = 0
		}
	case kind.Ends():
		e.Held = now.Sub(l.granted)
		if s.fault == "Held is the TTL" {
			e.Held = l.req.TTL
		}
	}
	s.note(n, e, l.req.LeaseID, now)
}

// noteEnd records that l was released.
func (s *store) noteEnd(n *entry, l *lease, req driver.ReleaseRequest, now time.Time) {
	kind := lockinfo.HistoryReleased
	if req.Lost && s.fault != "loss is written as a release" || s.fault == "every release is written as a loss" {
		kind = lockinfo.HistoryLost
	}
	s.noteLease(kind, n, l, now)
}

// noteHandOver records that p became l.
func (s *store) noteHandOver(n *entry, p *place, l *lease, now time.Time) {
	e := lockinfo.HistoryEvent{Kind: lockinfo.HistoryHandedOver, Mode: n.modeOf(l), Token: l.token, Holder: s.holder(p.req), Waited: now.Sub(p.since)}
	switch s.fault {
	case "hand-over is written as a grant":
		e.Kind, e.Waited = lockinfo.HistoryAcquired, 0
	case "Waited is not noted":
		e.Waited = 0
	}
	s.note(n, e, p.req.LeaseID, now)
}

// noteBreak records that l was broken.
func (s *store) noteBreak(n *entry, l *lease, req driver.BreakRequest, now time.Time) {
	e := lockinfo.HistoryEvent{
		Kind: lockinfo.HistoryBroken, Mode: n.modeOf(l), Token: l.token, Holder: s.holder(l.req),
		Held: now.Sub(l.granted), Author: req.Author, Reason: req.Reason,
	}
	switch s.fault {
	case "break is written as a release":
		e.Kind, e.Author, e.Reason = lockinfo.HistoryReleased, "", ""
	case "break is written without its reason":
		e.Reason = ""
	case "opening a kept name is not written":
		if l.released {
			return
		}
	}
	s.note(n, e, l.req.LeaseID, now)
}

// notePlace records that p was created, or that it ended without a lease.
func (s *store) notePlace(kind lockinfo.HistoryKind, n *entry, p *place, now time.Time) {
	e := lockinfo.HistoryEvent{Kind: kind, Mode: p.req.Mode, Holder: s.holder(p.req)}
	if kind == lockinfo.HistoryGaveUp {
		e.Waited = now.Sub(p.since)
		if over := p.until.Sub(p.since); over < e.Waited {
			e.Waited = over
		}
	}
	if kind == lockinfo.HistoryQueued && s.fault == "place is not written" || kind == lockinfo.HistoryGaveUp && s.fault == "leaving is not written" {
		return
	}
	s.note(n, e, p.req.LeaseID, now)
}

// note records an event, and reports it unless it may have to be removed.
func (s *store) note(n *entry, e lockinfo.HistoryEvent, id lockinfo.LeaseID, now time.Time) {
	if !s.caps.History {
		return
	}
	s.number++
	e.Name, e.ID = n.name, strconv.Itoa(s.number)
	switch s.fault {
	case "events carry the lease ID":
		e.ID = string(id) + ":" + e.ID
	case "events are numbered by name":
		e.ID = strconv.Itoa(len(n.events))
	case "event IDs have spaces":
		e.ID = "event " + e.ID
	case "events drop the holder":
		e.Holder = lockinfo.Holder{}
	case "events drop the mode":
		e.Mode = lockinfo.Exclusive
	case "events drop the token":
		e.Token = 0
	}
	n.events = append(n.events, written{e, s.by, now.Add(-e.Ago)})
	switch s.fault {
	case "every event is remembered":
	case "half the events are remembered":
		n.events = n.events[max(0, len(n.events)-driver.MaxHistory/2):]
	case "events push breaks out":
		n.events = n.events[max(0, len(n.events)-driver.MaxHistory):]
	default:
		n.events = driver.KeepHistory(n.events, func(w written) lockinfo.HistoryKind { return w.Kind })
	}
	if s.unsaid = append(s.unsaid, e); !s.allAtOnce {
		s.say()
	}
}

// say reports the events that are final.
func (s *store) say() {
	for _, e := range s.unsaid {
		switch s.fault {
		case "feed drops the holder":
			e.Holder = lockinfo.Holder{}
		case "feed has IDs of its own":
			e.ID += "-told"
		}
		for _, f := range s.feeds {
			if s.fault == "feed stays in the engine" && f.engine != s.by {
				continue
			}
			s.tellEvent(f, e)
		}
	}
	s.unsaid = nil
}

// tellEvent reports an event to a feed. If the store is chatty, it reports the event late and
// twice.
func (s *store) tellEvent(f *feed, e lockinfo.HistoryEvent) {
	if !s.chatty {
		f.told(e)
		return
	}
	s.told++
	for _, d := range []time.Duration{300 * time.Millisecond, 400 * time.Millisecond} {
		time.AfterFunc(d+time.Duration(s.told)*time.Microsecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if slices.Contains(s.feeds, f) {
				f.told(lockinfo.HistoryEvent{})
				f.told(e)
			}
		})
	}
}

// forgetEvents removes the events that are too old.
func (s *store) forgetEvents(n *entry, now time.Time) {
	memory := driver.HistoryMemory
	switch s.fault {
	case "event is forgotten after a minute":
		memory = time.Minute
	case "event is never forgotten":
		memory *= 100
	case "history lasts from its latest event":
		if len(n.events) > 0 && now.Sub(n.events[len(n.events)-1].at) < memory {
			return
		}
	}
	n.events = slices.DeleteFunc(n.events, func(w written) bool { return now.Sub(w.at) >= memory })
}

func (e *engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	now, err := e.enterFor(ctx, e.caps.History, "History")
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	n := e.names[e.key(name)]
	if n == nil {
		return nil, nil
	}
	if e.fault != "History notices no expiry" {
		n = e.settled(name, now)
	}
	var all []lockinfo.HistoryEvent
	for _, w := range n.events {
		if e.fault != "event is always new" {
			w.Ago = now.Sub(w.at)
		}
		if e.fault == "event IDs are those of the reader" && w.by != e {
			w.ID += "-here"
		}
		w.Holder.Labels = maps.Clone(w.Holder.Labels)
		all = append(all, w.HistoryEvent)
	}
	if e.fault == "History begins with the latest" {
		slices.Reverse(all)
	}
	return all, nil
}

func (e *engine) OnEvent(told func(lockinfo.HistoryEvent)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &feed{e, told}
	if !e.caps.History {
		return func() {}
	}
	e.feeds = append(e.feeds, f)
	if e.fault != "feed begins without a gap" {
		told(lockinfo.HistoryEvent{})
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.fault != "feed never stops" {
			e.feeds = slices.DeleteFunc(e.feeds, func(other *feed) bool { return other == f })
		}
	}
}
