package holdfast

import (
	"reflect"
	"time"
)

// A WaitState says how the wait of an acquire stands; see AcquireOptions.OnWait.
type WaitState struct {
	Name  string // of the lock that is waited for: AcquireAll waits for one after the other
	Place int    // in the queue of the store, 1 for its head; 0 if it gave none
	Queue int    // how many are in the queue; 0 if the store does not say

	// Holder has the lock: the one of several whose lease ends first. It is zero
	// if a client that is not holdfast has it, or if the store has not said who
	// has it.
	Holder    Holder
	Since     time.Duration // how long ago the store granted that lease; 0 if it does not know
	ExpiresIn time.Duration // until it ends unless it is extended; Never if it has no end
	Released  bool          // it was released, and MinHold keeps the name closed until then
	Foreign   bool          // a client that is not holdfast has the lock, or it is left free for one

	Waited time.Duration // since Acquire was called
	Outage error         // why the store has not answered for a second or more; nil if it answers
}

// tellState tells OnWait how the wait stands, unless it knows.
func (w *waiter) tellState() {
	if w.opts.OnWait == nil || !w.waits {
		return
	}
	s := w.state()
	if w.shown != nil && w.shown.stillTrue(s) {
		w.shown.Since = s.Since
		return
	}
	w.shown = &s
	w.opts.OnWait(s)
}

func (w *waiter) state() WaitState {
	s := WaitState{Name: w.req.Name, Waited: time.Since(w.began)}
	if w.outage {
		s.Outage = w.failure
	}
	if w.blocker != nil {
		by := w.heldError(s.Waited)
		s.Place, s.Queue, s.Holder, s.Since = w.blocker.Place, by.Queue, by.Holder, by.Since
		s.ExpiresIn, s.Released, s.Foreign = by.ExpiresIn, by.Released, by.Foreign
	}
	return s
}

// stillTrue reports whether somebody who knows old need not hear of s, and counts the
// times on for himself. A lease that has been held for a shorter time is another one.
func (old *WaitState) stillTrue(s WaitState) bool {
	return old.Place == s.Place && old.Queue == s.Queue && old.Released == s.Released && old.Foreign == s.Foreign &&
		(old.Outage == nil) == (s.Outage == nil) && old.Since <= s.Since && reflect.DeepEqual(old.Holder, s.Holder)
}
