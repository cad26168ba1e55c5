package mem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. An event is written once, in the step that it describes, and delivered
// in the order of the steps, without lease IDs (INVARIANT I4). A name keeps only the latest
// events of a day (I11). An engine without the option writes nothing, and its names have no
// ledger.

// A chronicle is shared by the ledgers of one engine; nil without the option.
type chronicle struct {
	feed driver.Feed // has a mutex of its own, which is locked after Engine.mu
	born time.Time   // part of the event IDs, which differ from an earlier store's
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
	lockinfo.HistoryEvent
	at time.Time // when it happened, for Ago
}

// open returns a ledger for a name.
func (c *chronicle) open(name string) *ledger {
	if c == nil {
		return nil
	}
	return &ledger{chronicle: c, name: name}
}

// write writes an event that happened e.Ago before now, and delivers it. The entry shares
// the holder with the lease: readers get a copy.
func (b *ledger) write(e lockinfo.HistoryEvent, now time.Time) {
	if b == nil {
		return
	}
	b.last++
	e.ID, e.Name = fmt.Sprintf("%x-%x", b.born.UnixMicro(), b.last), b.name
	b.events = append(b.events, entry{e, now.Add(-e.Ago)})
	if len(b.events) > driver.MaxHistory { // INVARIANT I11
		b.events = driver.KeepHistory(b.events, func(w entry) lockinfo.HistoryKind { return w.Kind })
	}
	e.Holder = copyHolder(e.Holder)
	b.feed.Tell(e)
}

// leased writes an event about h.
func (b *ledger) leased(kind lockinfo.HistoryKind, h *lease, now time.Time) {
	if b != nil { // saves making the event
		b.write(h.event(kind, now), now)
	}
}

// purge forgets old events.
func (b *ledger) purge(now time.Time) {
	if b != nil {
		b.events = slices.DeleteFunc(b.events, func(e entry) bool { return now.Sub(e.at) >= driver.HistoryMemory })
	}
}

// empty reports whether there is nothing to remember.
func (b *ledger) empty() bool { return b == nil || len(b.events) == 0 }

// event returns an event about the lease. Held ends now, or at the lease's expiry if that is
// earlier.
func (h *lease) event(kind lockinfo.HistoryKind, now time.Time) lockinfo.HistoryEvent {
	e := lockinfo.HistoryEvent{Kind: kind, Mode: h.mode, Token: h.token, Holder: h.who}
	e.Held = max(min(now.Sub(h.granted), h.expiry.Sub(h.granted)), 0)
	if kind == lockinfo.HistoryExpired {
		e.Ago = max(now.Sub(h.expiry), 0)
	}
	return e
}

// event returns an event about the place.
func (p *place) event(kind lockinfo.HistoryKind) lockinfo.HistoryEvent {
	return lockinfo.HistoryEvent{Kind: kind, Mode: p.req.Mode, Holder: p.req.Holder}
}

// leftEvent returns the event of a place that ends without a lease.
func (p *place) leftEvent(now time.Time) lockinfo.HistoryEvent {
	e := p.event(lockinfo.HistoryGaveUp)
	e.Waited = min(now.Sub(p.asked), p.until.Sub(p.asked))
	return e
}

// History implements driver.Historian.
func (e *Engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	if e.chronicle == nil {
		return nil, fmt.Errorf("history is %w: open the engine with it", driver.ErrUnsupported)
	}
	return answer(ctx, e, func(now time.Time) ([]lockinfo.HistoryEvent, error) {
		if e.locks[name] == nil { // never used: do not create it
			return nil, nil
		}
		var all []lockinfo.HistoryEvent
		for _, w := range e.settleLocked(name, now).ledger.events {
			w.Holder, w.Ago = copyHolder(w.Holder), now.Sub(w.at)
			all = append(all, w.HistoryEvent)
		}
		return all, nil
	})
}

// OnEvent implements driver.Historian.
func (e *Engine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if e.chronicle == nil {
		return func() {}
	}
	return e.chronicle.feed.OnEvent(listener, true)
}
