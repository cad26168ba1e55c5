package sqlitelock

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A view is the state of a name as one request sees it: the input of package rules, and the values
// that the statements need.
type view struct {
	rules.View
	own   int64 // token of the lease ID's live lease; 0 if there is none
	last  int64 // token of the name; 0 if none is remembered
	stale bool  // there are rows to purge

	first row // the lease that ends first, without its mode

	taken, head modes.Fields // the scanned columns of Taken and Head
	headExpiry  int64        // of the first place
}

// none is the kind of the leases, or of the head, if there are none.
const none modes.Kind = 9 // a small number, which is scanned without an allocation

// look reads the view of a name for a lease ID.
func (r *reader) look(name string, id lockinfo.LeaseID) (view, error) {
	var v view
	_, err := r.sql.one(lookSQL, []any{name, id, r.bootID, r.now.boot, int64(r.now.micros)},
		&v.Cancelled, &v.own, &v.last, &v.Recorded, &v.stale,
		&v.taken.Kind, &v.taken.Limit, &v.taken.Permits, &v.first.holder, &v.first.began, &v.first.expiry, &v.first.released,
		&v.head.Kind, &v.head.Limit, &v.head.Permits, &v.HeadOnce, &v.headExpiry)
	v.Own, v.Held, v.Queued = v.own != 0, v.taken.Kind != none, v.head.Kind != none
	if v.Held {
		v.Taken = v.taken.Mode()
	}
	if v.Queued {
		v.Head = v.head.Mode()
	}
	v.Left = r.now.until(v.first.expiry)
	return v, err
}

// glimpse returns the view of a name for a lease ID if the name is free, and reports whether it is.
func (r *reader) glimpse(name string, id lockinfo.LeaseID) (v view, free bool, err error) {
	_, err = r.sql.one(freeSQL, []any{name, id}, &v.last, &free)
	v.taken.Kind, v.head.Kind = none, none
	return v, free, err
}

// settled reports whether there is nothing to purge and no waiter to serve.
func (v *view) settled() bool { return !v.stale && v.Settled() }

// add counts a lease that was granted at now.
func (v *view) add(m lockinfo.Mode, holder string, expiry int64, now instant) {
	if v.AddLease(m, now.until(expiry)) {
		v.first = row{holder: holder, began: now.boot, expiry: expiry}
	}
}

// blocker describes the lease that ends first, without the caller's place. Its queue length
// is 0 or 1: see engine.count.
func (v *view) blocker(now instant) driver.Blocker {
	var first lockinfo.Holding
	if v.Held {
		first = v.first.holding(now)
	}
	queue := 0
	if v.Queued {
		queue = 1
	}
	return v.Blocker(first, 0, queue)
}
