package sqlitelock

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// A need is what decides whether a request fits beside others.
type need struct {
	mode    driver.Mode
	limit   int // of a semaphore; else 0
	permits int // of them; else 0
}

func needOf(req driver.AcquireRequest) need { return need{req.Mode, req.Limit, req.Permits} }

// A view is what one request sees of a name: its live leases, taken together,
// the first live place, and what concerns the request's own lease ID.
type view struct {
	cancelled bool  // the lease ID was cancelled
	own       int64 // token of the lease ID's live lease; 0 if there is none
	recorded  bool  // the name has a record
	stale     bool  // there are rows to purge

	taken  need   // by the live leases together; its mode is nobody if there are none
	holder string // of the lease that ends first
	expiry int64  // of that lease

	head       need // of the first place; its mode is nobody if there is none
	headOnce   bool
	headExpiry int64

	stuck error // why the head is not served although it fits
}

// nobody is the mode of the leases, or of the head, where there are none.
const nobody driver.Mode = 9 // a small number, which is scanned without an allocation

// look reads the view of a name for a lease ID with stmt.
func look(stmt *sql.Stmt, name string, id driver.LeaseID, bootID string, now instant) (view, error) {
	var v view
	_, err := one(stmt, []any{name, id, bootID, now.boot, int64(now.micros)},
		&v.cancelled, &v.own, &v.recorded, &v.stale,
		&v.taken.mode, &v.taken.limit, &v.taken.permits, &v.holder, &v.expiry,
		&v.head.mode, &v.head.limit, &v.head.permits, &v.headOnce, &v.headExpiry)
	return v, err
}

// fits reports whether n may be granted beside the live leases. INVARIANT I1.
func (v *view) fits(n need) bool {
	switch {
	case !v.held():
		return true
	case n.mode == driver.Shared:
		return v.taken.mode == driver.Shared
	case n.mode == driver.Semaphore:
		return v.taken.mode == driver.Semaphore && v.taken.limit == n.limit && v.taken.permits+n.permits <= n.limit
	}
	return false
}

// held reports whether there is a live lease.
func (v *view) held() bool { return v.taken.mode != nobody }

// queued reports whether anybody has a place.
func (v *view) queued() bool { return v.head.mode != nobody }

// due reports whether the head is to be granted the lock.
func (v *view) due() bool { return v.queued() && v.fits(v.head) }

// settled reports whether there is nothing to purge and nobody to serve.
func (v *view) settled() bool {
	return !v.stale && !v.due() && (!v.queued() || !v.headOnce || !v.recorded)
}

// add counts a lease that was granted to n.
func (v *view) add(n need, holder string, expiry int64) {
	if !v.held() || expiry < v.expiry {
		v.holder, v.expiry = holder, expiry
	}
	v.taken = need{n.mode, n.limit, v.taken.permits + n.permits}
}

// checkKind fails if n is of another kind than what is there. INVARIANT I12.
func (v *view) checkKind(n need) error {
	there := v.taken
	switch {
	case v.held():
	case v.queued():
		there = v.head
	default:
		return nil
	}
	counts := n.mode == driver.Semaphore
	switch isCounting := there.mode == driver.Semaphore; {
	case !counts && isCounting:
		return fmt.Errorf("%w: the name is a semaphore with limit %d now: use another name", driver.ErrKindMismatch, there.limit)
	case counts && !isCounting:
		return fmt.Errorf("%w: the name is no semaphore now: use another name", driver.ErrKindMismatch)
	case counts && n.limit != there.limit:
		return fmt.Errorf("%w: the semaphore has limit %d now: ask for the same, or wait until nobody uses it", driver.ErrKindMismatch, there.limit)
	}
	return nil
}

// judge decides about a request, and returns the least token to grant it. It
// is guaranteed that the name is settled.
func (v *view) judge(req driver.AcquireRequest, now instant) (outcome driver.Outcome, least uint64, err error) {
	switch {
	case v.cancelled:
		return driver.Cancelled, 0, nil // INVARIANT I5: overtaken by its own cancel
	case v.own != 0:
		return driver.Granted, 0, nil // INVARIANT I6: a repeat
	case req.Once && v.recorded:
		return driver.Recorded, 0, nil
	}
	if err := v.checkKind(needOf(req)); err != nil {
		return driver.Held, 0, err
	}
	least, err = driver.LeastToken(now.micros, req.MinToken)
	switch {
	case err != nil:
		return driver.Held, 0, err
	case v.stuck != nil:
		return driver.Held, 0, v.stuck
	// INVARIANT I7: whoever has a place comes first. If it were this
	// request's turn, it would have been served.
	case v.queued() || !v.fits(needOf(req)):
		return driver.Held, 0, nil
	}
	return driver.Granted, least, nil
}

// blocker describes the lease that ends first, without the place of who asks.
func (v *view) blocker(now instant) driver.Blocker {
	return driver.Blocker{Holder: describe(v.holder), ExpiresIn: now.until(v.expiry)}
}

// describe returns the holder for people; a text that is not ours says
// nothing.
func describe(holder string) driver.Holder {
	var h driver.Holder
	if json.Unmarshal([]byte(holder), &h) != nil {
		return driver.Holder{}
	}
	return h
}
