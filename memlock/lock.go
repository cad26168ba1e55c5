package memlock

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A lock is what the engine remembers of one name. It stays after the last
// lease has ended, for the last token.
type lock struct {
	lastToken uint64
	leases    []*lease // compatible with one another; in the order of their grants
	queue     []*place // in the order of their first requests
	record    *record  // nil if there is none
	broken    []broken // the latest last
}

// A lease is live until its expiry. req is the request that was granted.
type lease struct {
	req      driver.AcquireRequest
	token    uint64
	expiry   time.Time
	released bool // kept closed by KeepFor
}

// A place is one waiter's in a queue. req is its latest request.
type place struct {
	req   driver.AcquireRequest
	asked time.Time // when the first request came
	until time.Time // when the place is given up
}

// purge takes out what has ended.
func (l *lock) purge(now time.Time) {
	l.leases = slices.DeleteFunc(l.leases, func(h *lease) bool { return !now.Before(h.expiry) })
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool { return !now.Before(p.until) })
	if l.record != nil && !now.Before(l.record.expiry) {
		l.record = nil
	}
	l.broken = slices.DeleteFunc(l.broken, func(b broken) bool { return now.Sub(b.at) >= driver.BreakMemory })
}

// unused reports whether nothing but the last token would be lost with l.
func (l *lock) unused() bool {
	return len(l.leases) == 0 && len(l.queue) == 0 && l.record == nil && len(l.broken) == 0
}

// held returns the live lease of id unless it was released.
func (l *lock) held(id driver.LeaseID) *lease {
	for _, h := range l.leases {
		if h.req.LeaseID == id && !h.released {
			return h
		}
	}
	return nil
}

// find returns the index of id's place, or -1.
func (l *lock) find(id driver.LeaseID) int {
	return slices.IndexFunc(l.queue, func(p *place) bool { return p.req.LeaseID == id })
}

// leave gives up id's place, if it has one.
func (l *lock) leave(id driver.LeaseID) {
	if i := l.find(id); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
}

// fits reports whether req may be granted beside the live leases.
// INVARIANT I1.
func (l *lock) fits(req driver.AcquireRequest) bool {
	if len(l.leases) == 0 {
		return true
	}
	switch req.Mode {
	case driver.Shared:
		return l.leases[0].req.Mode == driver.Shared
	case driver.Semaphore:
		taken := 0
		for _, h := range l.leases {
			taken += h.req.Permits
		}
		return taken+req.Permits <= req.Limit
	}
	return false
}

// checkKind fails if req is of another kind than what is there. INVARIANT I12.
func (l *lock) checkKind(req driver.AcquireRequest) error {
	var there driver.AcquireRequest
	switch {
	case len(l.leases) > 0:
		there = l.leases[0].req
	case len(l.queue) > 0:
		there = l.queue[0].req
	default:
		return nil
	}
	counts := req.Mode == driver.Semaphore
	switch isCounting := there.Mode == driver.Semaphore; {
	case !counts && isCounting:
		return fmt.Errorf("%w: the name is a semaphore with limit %d now: use another name", driver.ErrKindMismatch, there.Limit)
	case counts && !isCounting:
		return fmt.Errorf("%w: the name is no semaphore now: use another name", driver.ErrKindMismatch)
	case counts && req.Limit != there.Limit:
		return fmt.Errorf("%w: the semaphore has limit %d now: ask for the same, or wait until nobody uses it", driver.ErrKindMismatch, there.Limit)
	}
	return nil
}

// grant records a lease for req that ends at expiry. least is the smallest
// token that it may have; the token is above every earlier one, whatever the
// clock does. INVARIANT I2.
func (l *lock) grant(req driver.AcquireRequest, least uint64, expiry time.Time) *lease {
	l.lastToken = max(least, l.lastToken+1)
	h := &lease{req: req, token: l.lastToken, expiry: expiry}
	l.leases = append(l.leases, h)
	return h
}

// lengthen moves the expiry to t unless it is later already.
func (h *lease) lengthen(t time.Time) {
	if t.After(h.expiry) {
		h.expiry = t
	}
}

// blocker describes what keeps others out, for a waiter at the given place.
func (l *lock) blocker(place int, now time.Time) driver.Blocker {
	w := driver.Blocker{Place: place}
	for i, h := range l.leases {
		if left := h.expiry.Sub(now); i == 0 || left < w.ExpiresIn {
			w.Holder, w.ExpiresIn = copyHolder(h.req.Holder), left
		}
	}
	return w
}

// copyHolder returns a copy that shares no labels with h: callers may change
// what they gave and what they got, as with a store that is elsewhere.
func copyHolder(h driver.Holder) driver.Holder {
	h.Labels = maps.Clone(h.Labels)
	return h
}
