package holdfast

import (
	"time"

	"github.com/holdfast-locks/holdfast/internal/holders"
)

// A WaitState is the state of the wait of an acquire; see AcquireOptions.OnWait.
type WaitState struct {
	Name  string // the lock that the caller waits for: AcquireAll waits for one after the other
	Place int    // the caller's place in the queue of the store, 1 for its head; 0 if it has none
	Queue int    // how many clients are in the queue; 0 if the store does not report it

	// Holder has the lock: the one of several whose lease ends first. It is zero
	// if a client that is not holdfast has it, or if the store has not named it.
	Holder    Holder
	Since     time.Duration // how long ago the store granted that lease; 0 if it does not know
	ExpiresIn time.Duration // until the lease expires unless it is extended; Never if it has no end
	Released  bool          // the holder has released it, and MinHold keeps the name closed until then
	Foreign   bool          // a client that is not holdfast has the lock, or the lock is left free for one

	Waited time.Duration // since Acquire was called
	Outage error         // why the store has not answered for a second or more; nil if it answers
}

// tellState calls OnWait with the state of the wait, unless it has not changed.
func (a *acquisition) tellState() {
	if a.opts.OnWait == nil || !a.waits {
		return
	}
	s := a.state()
	if a.report.state != nil && a.report.state.stillTrue(s) {
		a.report.state.Since = s.Since
		return
	}
	a.report.state = &s
	a.opts.OnWait(s)
}

func (a *acquisition) state() WaitState {
	s := WaitState{Name: a.req.Name, Waited: time.Since(a.began)}
	if a.failing.outage {
		s.Outage = a.failing.err
	}
	if a.blocker != nil {
		by := a.heldError(s.Waited)
		s.Place, s.Queue, s.Holder, s.Since = a.blocker.Place, by.Queue, by.Holder, by.Since
		s.ExpiresIn, s.Released, s.Foreign = by.ExpiresIn, by.Released, by.Foreign
	}
	return s
}

// stillTrue reports whether s differs from old only in times that the caller can count on its
// own. If s has a smaller Since, another lease is in the way.
func (old *WaitState) stillTrue(s WaitState) bool {
	return old.Place == s.Place && old.Queue == s.Queue && old.Released == s.Released && old.Foreign == s.Foreign &&
		(old.Outage == nil) == (s.Outage == nil) && old.Since <= s.Since && holders.Equal(old.Holder, s.Holder)
}
