package sim

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// holds records that a client trusts a lease from now until its context ends.
func (h *history) holds(holder string, by *host, l *holdfast.Lease) {
	h.mu.Lock()
	t := &tenure{lease: l, holder: holder, by: by, mode: l.Mode(), from: time.Now()}
	if old := h.tenures[l.ID()]; old != nil && !old.left && (old.lease.Context().Err() == nil || old.lease.Token() >= l.Token()) {
		h.violateLocked("%s: the lease ID %s was handed out twice", holder, short(l.ID()))
	}
	h.tenures[l.ID()] = t
	h.byName[l.Name()] = append(h.byName[l.Name()], t)
	h.counts["leases"]++
	h.noteLocked("%s: holds %s, lease %s, token %d, %v, for %v",
		holder, l.Name(), short(l.ID()), l.Token(), l.Mode(), time.Until(l.Deadline()))
	h.mu.Unlock()
	context.AfterFunc(l.Context(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		t := h.tenures[l.ID()]
		if t.lease != l { // a later turn has its own tenure
			t = &tenure{}
		}
		for _, other := range h.byName[l.Name()] {
			if other.lease == l && other.to.IsZero() {
				t = other // the lease may have been adopted since
			}
		}
		t.to = time.Now()
		h.noteLocked("%s: its lease %s of %s has ended: %v", holder, short(l.ID()), l.Name(), context.Cause(l.Context()))
	})
}

// shares records that a lease is about to be downgraded to shared.
func (h *history) shares(l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.tenures[l.ID()]
	if !old.to.IsZero() {
		return
	}
	old.to = time.Now()
	t := &tenure{lease: l, holder: old.holder, mode: holdfast.Shared, from: old.to}
	h.tenures[l.ID()] = t
	h.byName[l.Name()] = append(h.byName[l.Name()], t)
	h.noteLocked("%s: downgrades lease %s of %s", t.holder, short(l.ID()), l.Name())
}

// leaves records that a lease is about to be left. It has no holder until a host adopts it.
func (h *history) leaves(l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tenures[l.ID()].left = true
	h.counts["leases left"]++
}

// renews checks each renewal that the library sends from a host. INVARIANT I9: the library sends no
// renewal for a lease that has ended or that the client has left.
func (h *history) renews(id holdfast.LeaseID, from *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tenures[id]; t != nil && !t.to.IsZero() && t.to.Before(time.Now()) && (!t.left || t.by == from) {
		h.violateLocked("%s: a renewal of lease %s of %s is sent %v after its end",
			t.holder, short(id), t.lease.Name(), time.Since(t.to))
	}
}

// isOver checks that a client no longer trusts a lease that the store has reported lost.
func (h *history) isOver(id holdfast.LeaseID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tenures[id]; t != nil && t.to.IsZero() {
		h.violateLocked("%s still trusts lease %s of %s; the store has answered that it is lost", t.holder, short(id), t.lease.Name())
	}
}

// checkExclusion finds leases of a name that exclude each other and were trusted at the same time.
// INVARIANT I1, as clients see it: an interval includes its beginning but not its end.
func (h *history) checkExclusion() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.byName {
		slices.SortStableFunc(all, func(a, b *tenure) int { return a.from.Compare(b.from) })
		var live []*tenure
		for _, t := range all {
			if !h.tainted.IsZero() && !t.from.Before(h.tainted) {
				break
			}
			live = slices.DeleteFunc(live, func(o *tenure) bool { return !o.to.IsZero() && !o.to.After(t.from) })
			if t.to.IsZero() || t.to.After(t.from) {
				h.checkBesideLocked(t, live)
				live = append(live, t)
			}
		}
	}
}

func (h *history) checkBesideLocked(t *tenure, live []*tenure) {
	permits := t.mode.Permits()
	for _, o := range live {
		permits += o.mode.Permits()
		if t.lease != o.lease && (t.mode.Kind() != o.mode.Kind() || t.mode == holdfast.Exclusive) {
			h.violateLocked("two holders of %s at %v: %s (%v, lease %s, token %d, since %v) and %s (%v, lease %s, token %d)",
				t.lease.Name(), t.from.Sub(h.began), o.holder, o.mode, short(o.lease.ID()), o.lease.Token(), o.from.Sub(h.began),
				t.holder, t.mode, short(t.lease.ID()), t.lease.Token())
		}
	}
	if permits > t.mode.Limit() {
		h.violateLocked("%d permits of %s are held at %v, of %d", permits, t.lease.Name(), t.from.Sub(h.began), t.mode.Limit())
	}
}

// short returns the beginning of a lease ID, for traces.
func short(id holdfast.LeaseID) string { return string(id[:min(len(id), 6)]) }
