// Package rules decides which request is granted a lock. It implements the rules of
// package driver in Go, for engines whose store cannot decide by itself: which leases
// are compatible (INVARIANT I1), which request is first (I7), which requests are of the
// wrong kind for a name (I12), and what happens to a place.
//
// # How an engine uses it
//
// In one atomic step of its store it
//
//  1. settles the name: it removes expired leases and places, gives up the places
//     whose work is done already ([View.GivesUp]), and serves the first of
//     the queue for as long as it is due ([View.Due]);
//  2. calls [View.Judge] for the request;
//  3. carries out the verdict: records a lease, gives a place, or neither;
//  4. settles the name again if it has made room, and sends notices to the waiters it served.
//
// # What happens to a place
//
//   - It expires: it is removed, and no notice is sent.
//   - Its request has Once set, and the name has a record: it is given up,
//     wherever in the queue it is. The waiter receives a notice without a
//     token.
//   - It is the first and fits: it becomes a lease, in the step that made room.
//     The lease ends when the place would have ended, so that a waiter that died
//     does not delay the others any longer. Its token is drawn in that step, see
//     [LeastToken]. The waiter receives the token.
//   - Otherwise it waits, and so do all later places.
package rules

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A View is the state of a name for one request, at one instant of the store's
// clock. The zero View is the view of an unused name. A View is a value,
// without a connection to the store.
type View struct {
	Cancelled bool // the request's lease ID was cancelled
	Own       bool // the lease ID has a live lease, which was not released
	Placed    bool // the lease ID has a place; only needed for a request with First
	Recorded  bool // the name has a record

	Held  bool          // there are live leases; a lease that KeepFor keeps closed is one
	Taken lockinfo.Mode // the mode of all of them together
	Left  time.Duration // until the first of them ends

	Queued   bool          // there are places
	Head     lockinfo.Mode // the mode of the first place
	HeadOnce bool          // the request of the first place has Once set

	// Stuck is why the head cannot be served although it fits, or nil.
	Stuck error
}

// AddLease counts a lease that ends in left. It reports whether the lease ends before those
// added so far, so that Blocker must describe this one. An expired lease does not count.
func (v *View) AddLease(m lockinfo.Mode, left time.Duration) (first bool) {
	if left <= 0 {
		return false
	}
	if first = !v.Held || left < v.Left; first {
		v.Left = left
	}
	v.Held = true
	v.Taken = v.Taken.Plus(m)
	return first
}

// AddPlace counts a place that ends in left. Places are added in the
// order of the queue. An expired place does not count.
func (v *View) AddPlace(m lockinfo.Mode, once bool, left time.Duration) {
	if left > 0 && !v.Queued {
		v.Queued, v.Head, v.HeadOnce = true, m, once
	}
}

// Fits reports whether m may be granted together with the live leases. INVARIANT I1:
// an exclusive lease is alone, shared leases are among themselves, and leases of
// a semaphore have no more permits together than its limit.
func (v *View) Fits(m lockinfo.Mode) bool {
	switch {
	case !v.Held:
		return true
	case m.Limit() != v.Taken.Limit():
		return false
	case m.Limit() != 0:
		return v.Taken.Permits()+m.Permits() <= m.Limit()
	}
	return m == lockinfo.Shared && v.Taken == lockinfo.Shared
}

// CheckKind returns an error if m is of another kind than the leases and places of the name.
// INVARIANT I12. They are all of one kind, because no other was granted.
func (v *View) CheckKind(m lockinfo.Mode) error {
	switch {
	case v.Held:
		return SameKind(v.Taken, m)
	case v.Queued:
		return SameKind(v.Head, m)
	}
	return nil
}

// SameKind returns an error that wraps driver.ErrKindMismatch if a request with mode m
// meets leases or places with a mode of another kind. Exclusive and Shared are one kind,
// modes with permits are one for each limit.
func SameKind(there, m lockinfo.Mode) error {
	switch is, wanted := there.Limit(), m.Limit(); {
	case is == wanted:
		return nil
	case wanted == 0:
		return fmt.Errorf("%w: the name is a semaphore with limit %d now: use that limit, or another name", driver.ErrKindMismatch, is)
	case is == 0:
		return fmt.Errorf("%w: the name is a lock without slots now: leave the limit out, or use another name", driver.ErrKindMismatch)
	default:
		return fmt.Errorf("%w: the semaphore has limit %d now: use that limit, or wait until the name is unused", driver.ErrKindMismatch, is)
	}
}

// Judge decides about a request for a name that is settled. clock is the
// store's, in microseconds since 1970.
//
// If the outcome is Granted and v.Own is set, the request is a repeat: the
// engine must lengthen the existing lease. If it is Granted otherwise, the engine must
// record a lease whose token is at least least, and above every earlier one of the name.
// If the outcome is Held and the request has Queue set, the engine must give the request
// a place. It must change nothing else in the store.
func (v *View) Judge(req *driver.AcquireRequest, clock uint64) (outcome driver.Outcome, least uint64, err error) {
	switch {
	case v.Cancelled:
		return driver.Cancelled, 0, nil // INVARIANT I5: its own cancel came first
	case req.First && (v.Own || v.Placed):
		return driver.Repeated, 0, nil
	case v.Own:
		return driver.Granted, 0, nil // INVARIANT I6: a repeat
	case req.Once && v.Recorded:
		return driver.Recorded, 0, nil
	}
	if err := v.CheckKind(req.Mode); err != nil {
		return driver.Held, 0, err
	}
	least, err = driver.LeastToken(clock, req.MinToken)
	switch {
	case err != nil:
		return driver.Held, 0, err
	case v.Stuck != nil:
		return driver.Held, 0, v.Stuck
	case !v.Free(req.Mode):
		return driver.Held, 0, nil
	}
	return driver.Granted, least, nil
}

// Free reports whether the name, which is settled, is free for a new request for
// m: m fits, and the queue is empty. INVARIANT I7: requests with a place come first. Settling
// the name has served those whose turn it is.
func (v *View) Free(m lockinfo.Mode) bool { return !v.Queued && v.Fits(m) }

// Blocker returns the Blocker of a reply of Held. first is the lease that ends first, place
// the rank of the request's place, or 0, and queue the number of places. Blocker leaves out
// the lease's token and ID (INVARIANT I4).
func (v *View) Blocker(first lockinfo.Holding, place, queue int) driver.Blocker {
	return driver.Blocker{
		Holder: first.Holder, Since: first.Since, ExpiresIn: v.Left, Released: first.Released,
		Place: place, Queue: queue,
	}
}

// Due reports whether the first place must become a lease. INVARIANT I7: no request
// is served before it, however small.
func (v *View) Due() bool { return v.Queued && !v.GivesUp(v.HeadOnce) && v.Fits(v.Head) }

// GivesUp reports whether a place must be given up because the work that it waits for is done.
// once is whether its request has Once set.
func (v *View) GivesUp(once bool) bool { return once && v.Recorded }

// Settled reports whether the first place needs neither to be served nor to be given up. It does
// not look at later places.
func (v *View) Settled() bool { return !v.Due() && (!v.Queued || !v.GivesUp(v.HeadOnce)) }

// LeastToken returns the smallest token of a lease that a place becomes, as
// driver.LeastToken does for a request. It does not compare minToken with the
// clock: that was done when the place was given, and the clock may have gone
// back since.
func LeastToken(clock, minToken uint64) uint64 { return max(clock, minToken+1) }

// NextToken returns the token of a new lease: at least least, and above the tokens that the
// last grant of the name, with the token last, has reserved. INVARIANT I2. It returns ErrUsedUp
// if there is no such token.
func NextToken(last, least uint64) (uint64, error) {
	token := max(last+driver.TokenRange, least)
	if token > driver.MaxToken {
		return 0, ErrUsedUp
	}
	return token, nil
}

// ErrUsedUp is the error of a name that has no fencing tokens left.
var ErrUsedUp = fmt.Errorf("%w: the fencing tokens of this name are used up", driver.ErrUnavailable)
