package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// hear makes the client hear of losses that the engine is told of. It returns
// how to stop.
func (c *Client) hear() (stop func()) {
	teller, ok := c.engine.(driver.LossTeller)
	if !ok || !c.engine.Capabilities().Losses {
		return func() {}
	}
	return teller.OnLoss(c.told)
}

// told is called by the engine for each message about a loss, of anybody's
// lease. Losses are rare, so that a look at all leases is cheaper than an index
// that each of them would have to be put in. A message can end a lease too
// early, but never keep one alive: INVARIANT I3 stands without any.
func (c *Client) told(loss driver.Loss) {
	for _, l := range c.keeper.leases() {
		switch {
		case l.name != loss.Name:
		case loss.LeaseID == "":
			l.look()
		case loss.LeaseID == l.id:
			l.lose(lossCause(loss.Err))
		}
	}
}

// look renews the lease now, or only asks for it if it is not to be renewed.
func (l *Lease) look() {
	now := l.client.now()
	l.mu.Lock()
	renews := l.state == stateHeld && l.renewsLocked()
	if renews {
		l.renewAt = now.mono
	}
	l.mu.Unlock()
	if renews {
		l.client.keeper.update(l)
		return
	}
	l.client.spawn(func(ctx context.Context) { _ = l.Verify(ctx) }) // ends the lease if it is lost
}

// lossCause returns what the context of a lease that is lost ends with, from
// what the store says.
func lossCause(err error) error {
	if isBroken(err) {
		return err
	}
	return errTakenAway
}

// How long, and about how many leases of one batch, the store is asked why
// they were lost. More is hardly ever a break, but a store that lost its data.
const (
	inquiryLimit = 250 * time.Millisecond
	inquiryMost  = 16
)

// An inquiry finds out why leases were lost, which the store says only if
// asked: renewals would have to pay for it otherwise.
type inquiry struct {
	client *Client
	asked  int
	end    time.Time
}

// cause returns why l, which the store says is not live, was lost.
func (q *inquiry) cause(ctx context.Context, l *Lease) error {
	breaker, ok := q.client.breaker()
	if q.asked == 0 {
		q.end = time.Now().Add(inquiryLimit)
	}
	if q.asked++; !ok || q.asked > inquiryMost {
		return errTakenAway
	}
	ctx, cancel := context.WithDeadline(ctx, q.end)
	defer cancel()
	broken, err := breaker.Breaks(ctx, l.name)
	if err != nil {
		q.asked = inquiryMost // once is enough
		return errTakenAway
	}
	for _, b := range broken {
		if b.LeaseID == l.id {
			return b.Err()
		}
	}
	return errTakenAway
}
