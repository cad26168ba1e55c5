package memlock

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// Duties shown here: what there is to remember of one name, and the steps that
// change it. They are the words for engine authors of package driver: look,
// purge, grant, lengthen, end, keep closed, give up a place, rank. None of them
// decides anything; that is for package driver/rules.

// A lock is what the engine remembers of one name. It stays after the last
// lease has ended, for the last token: the next must be greater (INVARIANT I2).
type lock struct {
	lastToken uint64
	leases    []*lease // compatible with one another; in the order of their grants
	queue     []*place // in the order of their first requests
	record    *record  // nil if there is none
	broken    []broken // the latest last
	ledger    *ledger  // nil without history
	stuck     error    // why the first of the queue is not served although it fits
}

// A lease is live until its expiry, the instant itself not included.
type lease struct {
	id       driver.LeaseID
	need     rules.Need
	who      driver.Holder // a copy
	token    uint64        // never changes
	granted  time.Time     // nor does this, which is the clock's; the token may be ahead of it
	expiry   time.Time
	released bool // kept closed by KeepFor
}

// A place is one waiter's in a queue.
type place struct {
	req   driver.AcquireRequest // the first one; repeats only lengthen the place
	asked time.Time             // when the first request came
	until time.Time             // when the place is given up
}

// purge takes out what has ended. Of leases and places that is all there is to
// an expiry: no holder is told, and whoever comes next finds the name so.
func (l *lock) purge(now time.Time) {
	l.leases = slices.DeleteFunc(l.leases, func(h *lease) bool {
		over := !now.Before(h.expiry)
		if over && !h.released {
			l.ledger.ended(driver.EventExpired, h, now)
		}
		return over
	})
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool {
		over := !now.Before(p.until)
		if over {
			l.ledger.left(p, now)
		}
		return over
	})
	l.ledger.purge(now)
	if l.record != nil && !now.Before(l.record.expiry) {
		l.record = nil
	}
	l.broken = slices.DeleteFunc(l.broken, func(b broken) bool { return now.Sub(b.at) >= driver.BreakMemory })
}

// unused reports whether nothing but the last token would be lost with l.
// INVARIANT I11.
func (l *lock) unused() bool {
	return len(l.leases) == 0 && len(l.queue) == 0 && l.record == nil && len(l.broken) == 0 && l.ledger.empty()
}

// held returns the live lease of id unless it was released. The ID is compared
// whole, and neither the name nor the holder stands in for it. INVARIANT I4.
func (l *lock) held(id driver.LeaseID) *lease {
	for _, h := range l.leases {
		if h.id == id && !h.released {
			return h
		}
	}
	return nil
}

// rank returns which place id has, 1 for the first; 0 if it has none.
func (l *lock) rank(id driver.LeaseID) int {
	return 1 + slices.IndexFunc(l.queue, func(p *place) bool { return p.req.LeaseID == id })
}

// giveUpPlace gives up id's place, if it has one. Those behind it move up.
func (l *lock) giveUpPlace(id driver.LeaseID, now time.Time) {
	if rank := l.rank(id); rank > 0 {
		l.ledger.left(l.queue[rank-1], now)
		l.queue = slices.Delete(l.queue, rank-1, rank)
	}
}

// look fills in v, which is empty, with what is to be seen of the lock, which
// was purged, and returns the lease that ends first. What concerns one lease ID
// is for the caller to add. What KeepFor keeps closed is in the way as any lease.
func (l *lock) look(v *rules.View, now time.Time) (first *lease) {
	v.Recorded, v.Stuck = l.record != nil, l.stuck
	for _, h := range l.leases {
		if v.AddLease(h.need, h.expiry.Sub(now)) {
			first = h
		}
	}
	l.addHead(v, now)
	return first
}

// addHead shows v who is first in the queue now.
func (l *lock) addHead(v *rules.View, now time.Time) {
	v.Queued = false
	if len(l.queue) > 0 {
		head := l.queue[0]
		v.AddPlace(rules.NeedOf(&head.req), head.req.Once, head.until.Sub(now))
	}
}

// grant records a lease for req, of granted to expiry. No other lease of the name
// had the token: whoever calls it has drawn it with rules.NextToken, or has
// compared it with lastToken. INVARIANT I2.
func (l *lock) grant(req *driver.AcquireRequest, token uint64, granted, expiry time.Time) *lease {
	l.lastToken = token
	h := &lease{id: req.LeaseID, need: rules.NeedOf(req), who: copyHolder(req.Holder), token: token, granted: granted, expiry: expiry}
	l.leases = append(l.leases, h)
	return h
}

// lengthen moves the end of a lease or a place to t unless it is later already: a
// repeat, or an old request that arrives late, shortens nothing. INVARIANT I6.
func lengthen(end *time.Time, t time.Time) {
	if t.After(*end) {
		*end = t
	}
}

// end takes out a lease. The lock is not served yet.
func (l *lock) end(h *lease) {
	l.leases = slices.DeleteFunc(l.leases, func(other *lease) bool { return other == h })
}

// keepClosed ends a lease, but leaves it in the way of others until t. It is
// held by nobody then: a repeat of the release finds no lease to lengthen.
func (h *lease) keepClosed(t time.Time) { h.released, h.expiry = true, t }

// blocker describes what is in the way of a waiter at the given place: of
// several leases the one that ends first, and neither its token nor its ID, with
// which the waiter could end it. INVARIANT I4.
func (l *lock) blocker(place int, now time.Time) driver.Blocker {
	var v rules.View
	first := l.look(&v, now)
	return v.Blocker(first.describe(now), place, len(l.queue))
}

// describe says what there is of the lease; of none it is nothing.
func (h *lease) describe(now time.Time) driver.Holding {
	if h == nil {
		return driver.Holding{}
	}
	return driver.Holding{
		LeaseID: h.id, Token: h.token, Permits: h.need.Permits, Holder: copyHolder(h.who),
		Since: max(now.Sub(h.granted), 0), ExpiresIn: h.expiry.Sub(now), Released: h.released,
	}
}

// copyHolder returns a copy that shares no labels with h: callers may change
// what they gave and what they got, as with a store that is elsewhere.
func copyHolder(h driver.Holder) driver.Holder {
	h.Labels = maps.Clone(h.Labels)
	return h
}
