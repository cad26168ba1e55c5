package memlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Duties shown here. What happens to a name is written down in the step that does it,
// once, and told in the order of the steps, with no lease ID in it (INVARIANT I4). Of a
// name there are the latest events of a day, and no others (I11). An engine without
// the option writes nothing, and its names have no ledger.

// A chronicle is what the names of one engine write in; nil without the option.
type chronicle struct {
	feed driver.Feed // has a mutex of its own, which is locked after Engine.mu
	born time.Time   // tells the events of this store from those of an earlier one
	last uint64      // how many events were written; Engine.mu guards it
}

// A ledger has the events of one name. Its methods do nothing if it is nil.
type ledger struct {
	*chronicle
	name   string
	events []entry // the oldest first
}

// An entry is one event.
type entry struct {
	driver.Event
	at time.Time // which becomes Ago when it is shown
}

// open returns a ledger for a name.
func (c *chronicle) open(name string) *ledger {
	if c == nil {
		return nil
	}
	return &ledger{chronicle: c, name: name}
}

// write writes an event down and tells it. The holder is shared with the lease: who
// reads gets a copy.
func (b *ledger) write(e driver.Event, now time.Time) {
	b.last++
	e.ID, e.Name = fmt.Sprintf("%x-%x", b.born.UnixMicro(), b.last), b.name
	b.events = append(b.events, entry{e, now})
	b.events = slices.Delete(b.events, 0, max(0, len(b.events)-driver.MaxHistory)) // INVARIANT I11
	e.Holder = copyHolder(e.Holder)
	b.feed.Tell(e)
}

// begun writes that h was granted.
func (b *ledger) begun(h *lease, now time.Time) {
	if b != nil {
		b.write(h.event(driver.EventAcquired), now)
	}
}

// handedOver writes that p has become h.
func (b *ledger) handedOver(p *place, h *lease, now time.Time) {
	if b != nil {
		e := h.event(driver.EventHandedOver)
		e.Waited = now.Sub(p.asked)
		b.write(e, now)
	}
}

// ended writes how h has ended, or what was kept closed of it: now, or when it was
// over if that is earlier.
func (b *ledger) ended(kind driver.EventKind, h *lease, now time.Time) {
	if b != nil {
		b.write(h.endEvent(kind, now), now)
	}
}

// broken writes that h was taken away.
func (b *ledger) broken(h *lease, req *driver.BreakRequest, now time.Time) {
	if b != nil {
		e := h.endEvent(driver.EventBroken, now)
		e.Author, e.Reason = req.Author, req.Reason
		b.write(e, now)
	}
}

// queued writes that p was given, and left that it has ended without a lease.
func (b *ledger) queued(p *place, now time.Time) {
	if b != nil {
		b.write(p.event(driver.EventQueued), now)
	}
}

func (b *ledger) left(p *place, now time.Time) {
	if b != nil {
		e := p.event(driver.EventLeft)
		e.Waited = earlier(now, p.until).Sub(p.asked)
		b.write(e, now)
	}
}

// purge forgets what is too old.
func (b *ledger) purge(now time.Time) {
	if b != nil {
		b.events = slices.DeleteFunc(b.events, func(e entry) bool { return now.Sub(e.at) >= driver.HistoryMemory })
	}
}

// empty reports whether there is nothing to remember.
func (b *ledger) empty() bool { return b == nil || len(b.events) == 0 }

// event returns what there is to say of the lease.
func (h *lease) event(kind driver.EventKind) driver.Event {
	return driver.Event{
		Kind: kind, Mode: h.need.Mode, Limit: h.need.Limit, Permits: h.need.Permits, Token: h.token, Holder: h.who,
	}
}

// endEvent is event for one that ends the lease.
func (h *lease) endEvent(kind driver.EventKind, now time.Time) driver.Event {
	e := h.event(kind)
	e.Held = max(earlier(now, h.expiry).Sub(h.granted), 0)
	return e
}

// event returns what there is to say of the place.
func (p *place) event(kind driver.EventKind) driver.Event {
	return driver.Event{
		Kind: kind, Mode: p.req.Mode, Limit: p.req.Limit, Permits: p.req.Permits, Holder: p.req.Holder,
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// History implements driver.Historian.
func (e *Engine) History(ctx context.Context, name string) ([]driver.Event, error) {
	if e.chronicle == nil {
		return nil, fmt.Errorf("history is %w: open the engine with it", driver.ErrUnsupported)
	}
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	if e.locks[name] == nil { // never used; and it is not remembered for that
		return nil, nil
	}
	var all []driver.Event
	for _, w := range e.settleLocked(name, now).ledger.events {
		w.Holder, w.Ago = copyHolder(w.Holder), now.Sub(w.at)
		all = append(all, w.Event)
	}
	return all, nil
}

// OnEvent implements driver.Historian.
func (e *Engine) OnEvent(told func(driver.Event)) (stop func()) {
	if e.chronicle == nil {
		return func() {}
	}
	return e.chronicle.feed.OnEvent(told, true)
}
