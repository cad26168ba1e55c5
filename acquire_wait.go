package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/wait"
)

// pause waits after an attempt that got no lease. It returns the lease if the store hands it
// over, nil when the next attempt is due, or the error of ctx.
func (a *acquisition) pause(ctx context.Context) (lease *Lease, err error) {
	a.wait.All = a.leads != nil // the others of the cohort rely on what its leader knows
	err = a.wait.Pause(ctx, &a.req, a.blocker, a.failing.requests > 0, func(n wait.Update[instant]) (next wait.Next) {
		lease, next = a.heard(n)
		return next
	})
	if !a.wait.Silent.IsZero() {
		a.countFailure(a.wait.Silent)
	}
	return lease, err
}

// heard handles an update of the place in the queue. It returns the lease if the store handed it
// over.
func (a *acquisition) heard(n wait.Update[instant]) (*Lease, wait.Next) {
	var lease *Lease
	switch {
	case n.Notice && a.uncertain:
		// After a lost reply the notice may be about an earlier place of the same lease
		// ID. Only a reply of the store tells.
		return nil, wait.Stay
	case n.Notice:
		lease = a.handedOver(n.Token)
	case n.Granted:
		lease = a.found(n.Token)
	case n.Err == nil:
		a.queued = n.Sent
		a.answered()
		a.blocked(*n.Blocker, n.Sent.Mono)
		a.tellPlace()
		a.tellState()
		return nil, wait.Stay
	case !driver.Permanent(n.Err):
		a.countFailure(n.Sent.Mono)
		a.suffer(n.Err)
		return nil, wait.Stay
	default:
		a.startOver() // the next attempt gets another place, or finds out why not
	}
	if lease == nil {
		return nil, wait.Retry
	}
	return lease, wait.Done
}

// courtesy returns how long to leave the lock to others before the first attempt if the store
// keeps no queue: at most half of the time that ctx leaves. It is 0 for do-once work, which
// this client does not do again.
func (a *acquisition) courtesy(ctx context.Context) time.Duration {
	if a.req.Once {
		return 0
	}
	d := a.client.turns.Pause(a.req.Name)
	if end, ok := ctx.Deadline(); ok && d > 0 {
		d = min(d, time.Until(end)/2)
	}
	return d
}

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
