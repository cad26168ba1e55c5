package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
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
