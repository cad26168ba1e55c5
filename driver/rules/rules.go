// Package rules decides who is granted a lock. It is the one reading, in Go, of
// what package driver says about that, for engines whose store cannot decide by
// itself: which leases go together (INVARIANT I1), who comes first (I7), which
// requests make no sense for a name (I12), and what becomes of a place.
//
// # How an engine uses it
//
// In one atomic step of its store it
//
//  1. settles the name: it takes out what is over, gives up the places of those
//     who want what is done already ([View.GivesUp]), and serves the first of
//     the queue for as long as it is due ([View.Due]);
//  2. asks [View.Judge] about the request;
//  3. does what that says: records a lease, gives a place, or neither;
//  4. settles the name again if it has made room, and tells whom it served.
//
// # What becomes of a place
//
//   - It is over: it is taken out, and nobody is told.
//   - Its request asked for Once, and the name has a record: it is given up,
//     wherever in the queue it is. The waiter is told, with a notice without a
//     token.
//   - It is the first and fits: it becomes a lease, in the step that made room.
//     The lease ends when the place would have ended, so that a waiter that died
//     costs the others no more than that, and its token is drawn then, see
//     [LeastToken]. The waiter is told the token.
//   - Otherwise it waits, and so do all behind it.
package rules

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Need is what decides whether a request fits beside others.
type Need struct {
	Mode    driver.Mode
	Limit   int // of a semaphore; else 0
	Permits int // of them; else 0
}

// NeedOf returns the need of a request.
func NeedOf(req *driver.AcquireRequest) Need { return Need{req.Mode, req.Limit, req.Permits} }

// A View is what one request sees of a name, at one instant of the store's
// clock. The zero View is that of a name that nobody uses. A View is a value;
// it knows nothing of the store.
type View struct {
	Cancelled bool // the request's lease ID was cancelled
	Own       bool // it has a live lease, which was not released
	Recorded  bool // the name has a record

	Held  bool          // there are live leases; what KeepFor keeps closed is one
	Taken Need          // by all of them together
	Left  time.Duration // until the first of them ends

	Queued   bool // there are places
	Head     Need // of the first
	HeadOnce bool // it asked for Once

	// Stuck is why the head is not served although it fits; nil if it is.
	Stuck error
}

// AddLease counts a lease that ends when left is over, and reports whether it
// ends before those that were added so far: then it is the one to be described
// to those who have to wait. One that is over does not count.
func (v *View) AddLease(n Need, left time.Duration) (first bool) {
	if left <= 0 {
		return false
	}
	if first = !v.Held || left < v.Left; first {
		v.Left = left
	}
	v.Held = true
	v.Taken = Need{n.Mode, n.Limit, v.Taken.Permits + n.Permits}
	return first
}

// AddPlace counts a place that ends when left is over. They are added in the
// order of the queue. One that is over does not count.
func (v *View) AddPlace(n Need, once bool, left time.Duration) {
	if left > 0 && !v.Queued {
		v.Queued, v.Head, v.HeadOnce = true, n, once
	}
}

// Fits reports whether n may be granted beside the live leases. INVARIANT I1:
// an exclusive lease is alone, shared leases are among themselves, and those of
// a semaphore have no more permits together than its limit.
func (v *View) Fits(n Need) bool {
	switch {
	case !v.Held:
		return true
	case n.Mode != v.Taken.Mode:
		return false
	case n.Mode == driver.Shared:
		return true
	case n.Mode == driver.Semaphore:
		return n.Limit == v.Taken.Limit && v.Taken.Permits+n.Permits <= n.Limit
	}
	return false
}

// CheckKind fails if n is of another kind than what is there. INVARIANT I12.
// What is there is all of one kind, since nothing else was let in.
func (v *View) CheckKind(n Need) error {
	switch {
	case v.Held:
		return SameKind(v.Taken, n)
	case v.Queued:
		return SameKind(v.Head, n)
	}
	return nil
}

// SameKind returns what a request for n is told where there is something else:
// an error that wraps driver.ErrKindMismatch, or nil if they are of one kind.
// Exclusive and shared are one kind, a semaphore is one for each limit.
func SameKind(there, n Need) error {
	counts, isCounting := n.Mode == driver.Semaphore, there.Mode == driver.Semaphore
	switch {
	case !counts && isCounting:
		return fmt.Errorf("%w: the name is a semaphore with limit %d now: use another name", driver.ErrKindMismatch, there.Limit)
	case counts && !isCounting:
		return fmt.Errorf("%w: the name is not a semaphore now: use another name", driver.ErrKindMismatch)
	case counts && n.Limit != there.Limit:
		return fmt.Errorf("%w: the semaphore has limit %d now: ask for the same, or wait until nobody uses it", driver.ErrKindMismatch, there.Limit)
	}
	return nil
}

// Judge decides about a request for a name that is settled. Clock is the
// store's, in microseconds since 1970.
//
// If the outcome is Granted and v.Own is set, the request is a repeat: the
// engine lengthens the lease that there is. Otherwise it records a lease whose
// token is at least least, and above every earlier one of the name. If the
// outcome is Held and the request has Queue set, it gives the request a place.
// Nothing else changes the store.
func (v *View) Judge(req *driver.AcquireRequest, clock uint64) (outcome driver.Outcome, least uint64, err error) {
	switch {
	case v.Cancelled:
		return driver.Cancelled, 0, nil // INVARIANT I5: overtaken by its own cancel
	case v.Own:
		return driver.Granted, 0, nil // INVARIANT I6: a repeat
	case req.Once && v.Recorded:
		return driver.Recorded, 0, nil
	}
	if err := v.CheckKind(NeedOf(req)); err != nil {
		return driver.Held, 0, err
	}
	least, err = driver.LeastToken(clock, req.MinToken)
	switch {
	case err != nil:
		return driver.Held, 0, err
	case v.Stuck != nil:
		return driver.Held, 0, v.Stuck
	case !v.Free(NeedOf(req)):
		return driver.Held, 0, nil
	}
	return driver.Granted, least, nil
}

// Free reports whether the name, which is settled, is free for a new request for
// n: it fits, and nobody waits. INVARIANT I7: whoever has a place comes first. If
// it were this request's turn, it would have been served.
func (v *View) Free(n Need) bool { return !v.Queued && v.Fits(n) }

// Blocker says what is in the way of a request that is answered Held: first is the
// lease that ends first, place the rank of the request's place, or 0, and queue how
// many places there are. It leaves out the lease's token and ID (INVARIANT I4).
func (v *View) Blocker(first driver.Holding, place, queue int) driver.Blocker {
	return driver.Blocker{
		Holder: first.Holder, Since: first.Since, ExpiresIn: v.Left, Released: first.Released,
		Place: place, Queue: queue,
	}
}

// Due reports whether the first place is to become a lease. INVARIANT I7: nobody
// is served before it, however small their request.
func (v *View) Due() bool { return v.Queued && !v.GivesUp(v.HeadOnce) && v.Fits(v.Head) }

// GivesUp reports whether a place is given up whose request asked for Once, or
// did not: what it waits for is done.
func (v *View) GivesUp(once bool) bool { return once && v.Recorded }

// Settled reports whether there is nobody to serve and no place to be given up, as
// far as the first place tells.
func (v *View) Settled() bool { return !v.Due() && (!v.Queued || !v.GivesUp(v.HeadOnce)) }

// LeastToken returns the smallest token of a lease that comes of a place, as
// driver.LeastToken does for a request. It does not compare minToken with the
// clock: that was done when the place was given, and the clock may have gone
// back since.
func LeastToken(clock, minToken uint64) uint64 { return max(clock, minToken+1) }

// NextToken returns the token of a new lease: at least least, and above last,
// the last one of the name. INVARIANT I2. It fails with ErrUsedUp if there is
// no such token.
func NextToken(last, least uint64) (uint64, error) {
	token := max(last+1, least)
	if token > driver.MaxToken {
		return 0, ErrUsedUp
	}
	return token, nil
}

// ErrUsedUp is what a name answers whose last token is the greatest there is.
var ErrUsedUp = fmt.Errorf("%w: the fencing tokens of this name are used up", driver.ErrUnavailable)
