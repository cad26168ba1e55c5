package sqlitelock

import (
	"encoding/json"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// A view is what one request sees of a name: what the rules decide by, and
// where it stands in the database.
type view struct {
	rules.View
	own   int64 // token of the lease ID's live lease; 0 if there is none
	last  int64 // token of the name; 0 if none is remembered
	stale bool  // there are rows to purge

	first lease // that ends first, of its mode, limit and permits nothing

	headExpiry int64 // of the first place
}

// nobody is the mode of the leases if there are none, and so of the head.
const nobody driver.Mode = 9 // a small number, which is scanned without an allocation

// look reads the view of a name for a lease ID.
func (r *reader) look(name string, id driver.LeaseID) (view, error) {
	var v view
	_, err := r.sql.one(lookSQL, []any{name, id, r.bootID, r.now.boot, int64(r.now.micros)},
		&v.Cancelled, &v.own, &v.last, &v.Recorded, &v.stale,
		&v.Taken.Mode, &v.Taken.Limit, &v.Taken.Permits, &v.first.holder, &v.first.granted, &v.first.expiry, &v.first.released,
		&v.Head.Mode, &v.Head.Limit, &v.Head.Permits, &v.HeadOnce, &v.headExpiry)
	v.Own, v.Held, v.Queued = v.own != 0, v.Taken.Mode != nobody, v.Head.Mode != nobody
	v.Left = r.now.until(v.first.expiry)
	return v, err
}

// glimpse returns the view of a name for a lease ID if the name is free, and
// whether it is.
func (r *reader) glimpse(name string, id driver.LeaseID) (v view, free bool, err error) {
	_, err = r.sql.one(freeSQL, []any{name, id}, &v.last, &free)
	v.Taken.Mode, v.Head.Mode = nobody, nobody
	return v, free, err
}

// settled reports whether there is nothing to purge and nobody to serve.
func (v *view) settled() bool { return !v.stale && v.Settled() }

// add counts a lease that was granted at now.
func (v *view) add(n rules.Need, holder string, expiry int64, now instant) {
	if v.AddLease(n, now.until(expiry)) {
		v.first = lease{holder: holder, granted: now.boot, expiry: expiry}
	}
}

// blocker describes the lease that ends first, without the place of whoever asks. Of
// the queue it says only whether there is one: see Engine.count.
func (v *view) blocker(now instant) driver.Blocker {
	var first driver.Holding
	if v.Held {
		first = v.first.describe(now)
	}
	queue := 0
	if v.Queued {
		queue = 1
	}
	return v.Blocker(first, 0, queue)
}

// describe reads a holder. Of a text that is not ours it is empty.
func describe(holder string) driver.Holder {
	var h driver.Holder
	if json.Unmarshal([]byte(holder), &h) != nil {
		return driver.Holder{}
	}
	return h
}
