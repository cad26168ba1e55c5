package mem

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here: the state of one name, and the steps that change it. Package driver
// uses the same words: look, purge, grant, lengthen, end, keep closed, give up a place, rank.
// Package driver/rules makes the decisions.

// A lock is the state of one name. It stays after the last lease has ended, to keep the last
// token: the next token must be greater (INVARIANT I2).
type lock struct {
	lastToken uint64
	leases    []*lease // compatible with one another; in the order of their grants
	queue     []*place // in the order of their first requests
	record    *record  // nil if there is none
	broken    []broken // the latest last
	ledger    *ledger  // nil without history
	stuck     error    // why the first of the queue cannot be served although it fits, or nil
}

// A lease is live before its expiry, and not at the instant itself.
type lease struct {
	id       lockinfo.LeaseID
	mode     lockinfo.Mode
	who      lockinfo.Holder // a copy
	token    uint64          // never changes
	granted  time.Time       // by the clock; the token may be ahead of it; never changes
	expiry   time.Time
	ttl      time.Duration // the expiry minus the time when it was set
	released bool          // kept closed by KeepFor

	// proposer is the engine of a quorum that has proposed the lease, and may withdraw it. It
	// is empty if the lease is confirmed, or does not belong to a quorum.
	proposer driver.Proposer
}

// A place is the place of one waiter in a queue.
type place struct {
	req   driver.AcquireRequest // the first one; repeats only lengthen the place
	asked time.Time             // when the first request arrived
	until time.Time             // when the place expires
}

// purge removes expired leases, places and records. Expiry has no other effect: holders are
// not notified, and the next request purges the name.
func (l *lock) purge(now time.Time) {
	l.leases = slices.DeleteFunc(l.leases, func(h *lease) bool {
		over := !now.Before(h.expiry)
		if over && !h.released {
			l.ledger.leased(lockinfo.HistoryExpired, h, now)
		}
		return over
	})
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool {
		over := !now.Before(p.until)
		if over {
			l.ledger.write(p.leftEvent(now), now)
		}
		return over
	})
	l.ledger.purge(now)
	if l.record != nil && !now.Before(l.record.expiry) {
		l.record = nil
	}
	l.broken = slices.DeleteFunc(l.broken, func(b broken) bool { return now.Sub(b.at) >= driver.BreakMemory })
}

// unused reports whether l has nothing but the last token. INVARIANT I11.
func (l *lock) unused() bool {
	return len(l.leases) == 0 && len(l.queue) == 0 && l.record == nil && len(l.broken) == 0 && l.ledger.empty()
}

// held returns the live lease of id unless it was released. The whole ID is
// compared; neither the name nor the holder replaces it. INVARIANT I4.
func (l *lock) held(id lockinfo.LeaseID) *lease {
	for _, h := range l.leases {
		if h.id == id && !h.released {
			return h
		}
	}
	return nil
}

// rank returns which place id has, 1 for the first; 0 if it has none.
func (l *lock) rank(id lockinfo.LeaseID) int {
	return 1 + slices.IndexFunc(l.queue, func(p *place) bool { return p.req.LeaseID == id })
}

// giveUpPlace removes the place of id, if it has one. Later places move up.
func (l *lock) giveUpPlace(id lockinfo.LeaseID, now time.Time) {
	if rank := l.rank(id); rank > 0 {
		l.ledger.write(l.queue[rank-1].leftEvent(now), now)
		l.queue = slices.Delete(l.queue, rank-1, rank)
	}
}

// look fills in an empty v from a purged lock, and returns the lease that ends first, or nil.
// The caller fills in the fields about one lease ID. A released lease that KeepFor keeps closed
// counts like any other.
func (l *lock) look(v *rules.View, now time.Time) (first *lease) {
	v.Recorded, v.Stuck = l.record != nil, l.stuck
	for _, h := range l.leases {
		if v.AddLease(h.mode, h.expiry.Sub(now)) {
			first = h
		}
	}
	l.addHead(v, now)
	return first
}

// addHead sets the head of the queue in v.
func (l *lock) addHead(v *rules.View, now time.Time) {
	v.Queued = false
	if len(l.queue) > 0 {
		head := l.queue[0]
		v.AddPlace(head.req.Mode, head.req.Once, head.until.Sub(now))
	}
}

// grant records a lease for req, from granted to expiry. The token must be new for the name: the
// caller has drawn it with rules.NextToken, or has compared it with lastToken. INVARIANT I2.
func (l *lock) grant(req *driver.AcquireRequest, token uint64, granted, expiry time.Time) *lease {
	l.lastToken = token
	h := &lease{id: req.LeaseID, mode: req.Mode, who: copyHolder(req.Holder), token: token, granted: granted, expiry: expiry, ttl: expiry.Sub(granted)}
	l.leases = append(l.leases, h)
	return h
}

// lengthen moves the end of a lease or a place to t, unless t is earlier: a repeat or a late
// request shortens nothing. INVARIANT I6.
func lengthen(end *time.Time, t time.Time) {
	if t.After(*end) {
		*end = t
	}
}

// renew makes the lease last for ttl from now on, unless it lasts for longer.
func (h *lease) renew(now time.Time, ttl time.Duration) {
	if !now.Add(ttl).Before(h.expiry) {
		h.ttl = ttl
	}
	lengthen(&h.expiry, now.Add(ttl))
}

// end removes a lease. The caller serves the queue.
func (l *lock) end(h *lease) {
	l.leases = slices.DeleteFunc(l.leases, func(other *lease) bool { return other == h })
}

// keepClosed ends a lease for its holder, but blocks other requests with it for d from now on. A
// repeat of the release does not find it, and so does not lengthen it.
func (h *lease) keepClosed(now time.Time, d time.Duration) {
	h.released, h.expiry, h.ttl = true, now.Add(d), d
}

// blocker describes the lease in the way of a waiter at the given place: of several, the one that
// ends first. It leaves out the token and the ID, with which the waiter could end the lease.
// INVARIANT I4.
func (l *lock) blocker(place int, now time.Time) driver.Blocker {
	var v rules.View
	first := l.look(&v, now)
	return v.Blocker(first.describe(now), place, len(l.queue))
}

// describe returns the state of the lease, or zero for nil.
func (h *lease) describe(now time.Time) lockinfo.Holding {
	if h == nil {
		return lockinfo.Holding{}
	}
	return lockinfo.Holding{
		LeaseID: h.id, Token: h.token, Mode: h.mode, Holder: copyHolder(h.who),
		Since: max(now.Sub(h.granted), 0), ExpiresIn: h.expiry.Sub(now), Released: h.released,
		TTL: h.ttl,
	}
}

// copyHolder returns a copy that does not share its labels with h, because callers may change
// theirs.
func copyHolder(h lockinfo.Holder) lockinfo.Holder {
	h.Labels = maps.Clone(h.Labels)
	return h
}
