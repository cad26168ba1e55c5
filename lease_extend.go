package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/schedule"
)

// Extend makes the lease last at least until ttl after the call reached the
// store. It never shortens the lease, so that a repeated or delayed request
// does no harm. MaxHold still bounds it. It blocks until the store answers or
// ctx ends.
//
// It returns ErrLost if the lease has expired or was released; the lease then
// stays lost. ErrOutcomeUnknown leaves Deadline unchanged: the lease may or
// may not have been extended. On any other error it certainly was not.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := l.checkExtend(ttl); err != nil {
		return opError("extend", l.name, err)
	}
	return extendAll(ctx, []*Lease{l}, ceilMS(ttl))
}

// checkExtend returns an error that wraps ErrInvalid unless the lease can have the TTL.
func (l *Lease) checkExtend(ttl time.Duration) error {
	const both = "ttl with LockDelay"
	stored := ttl + l.present().lockDelay
	return cmp.Or(checkTTL("ttl", ttl), checkTTL(both, stored), driver.CheckTTL(l.client.features.Capabilities, both, stored))
}

// ExtendBy moves Deadline later by d. Call it between the steps of work of
// unknown length. It has the guarantees and errors of Extend.
func (l *Lease) ExtendBy(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > MaxTTL {
		return opError("extend", l.name, fmt.Errorf("%w duration %s: want more than 0, up to %s", ErrInvalid, d, MaxTTL))
	}
	return l.Extend(ctx, l.present().lengthenedBy(d, time.Now()))
}

// beginExtend returns the renewal to send. It returns false if the lease has ended, or too
// little of MaxHold is left.
func (l *Lease) beginExtend(ttl time.Duration, now instant) (renewal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.term.bounded(ttl, now)
	return renewal{l, x}, ok && l.beginLocked(x, now)
}

// beginLocked notes that a request to extend the lease is about to be sent. It returns false if
// the lease has ended. The caller must note the end of the request, as done and endVerify do.
// INVARIANT I9: after Release has begun no request begins, and Release waits for those under way.
func (l *Lease) beginLocked(x extension, now instant) bool {
	if l.state != stateHeld || l.term.over(now) {
		return false
	}
	l.term = l.term.asked(x, now)
	return true
}

// A renewal is one request to lengthen one lease.
type renewal struct {
	lease *Lease
	extension
}

func (r renewal) request() driver.ExtendRequest {
	return driver.ExtendRequest{Name: r.lease.name, LeaseID: r.lease.id, TTL: r.stored}
}

func (r renewal) name() string { return r.lease.name }

// sendRenewals sends one batch and returns the results of done.
func (c *Client) sendRenewals(ctx context.Context, sent instant, batch []renewal) []error {
	reqs := make([]driver.ExtendRequest, len(batch))
	for i, r := range batch {
		reqs[i] = r.request()
	}
	errs := c.engine.Extend(ctx, reqs)
	now := c.now()
	var lost []int
	for i, err := range errs {
		err = ask.Effective(ctx, err)
		if isLost(err) {
			lost = append(lost, i)
			continue
		}
		errs[i] = batch[i].done(sent, now, err)
	}
	c.leases.update(batch...)
	q := inquiry{client: c} // an inquiry may be slow, so the leases that last come first
	for _, i := range lost {
		errs[i] = batch[i].done(sent, now, q.cause(ctx, batch[i].lease))
	}
	return errs
}

// done notes the reply to a renewal that was sent no earlier than sent and answered no later than
// now. It returns nil if the lease was extended, or else why not. The caller must call the lease
// keeper's update for the lease.
func (r renewal) done(sent, now instant, err error) error {
	l := r.lease
	l.mu.Lock()
	l.term = l.term.landed(r.extension, driver.Definite(err), now)
	l.landLocked()
	switch {
	case l.state != stateHeld, l.term.over(now):
		err = l.term.cause() // too late, whatever the reply is: loss is final. INVARIANT I3
	case err == nil:
		l.term = l.term.renewed(r.extension, sent, now, l.client.leases.pace())
	case !isLost(err):
		l.term = l.term.failed(err, now, l.client.leases.pace())
	}
	if !isLost(err) {
		l.tellRenewalLocked(now.Mono.Sub(sent.Mono), err)
	}
	l.mu.Unlock()

	if isLost(err) {
		l.lose(err) // does nothing if the lease has ended already
		return l.lostError()
	}
	return err
}

// extendAll extends leases of one client. It returns the error of the first lease that was not
// extended.
func extendAll(ctx context.Context, leases []*Lease, ttl time.Duration) error {
	client := leases[0].client
	now := client.now()
	batches := schedule.NewBatches(client.features.Router, client.features.ExtendBatch(), renewal.name)
	for _, l := range leases {
		if r, ok := l.beginExtend(ttl, now); ok {
			batches.Add(r)
		}
	}
	ctx, cancel := client.requestContext(ctx)
	defer cancel()
	var mu sync.Mutex // guards failed
	failed := map[*Lease]error{}
	var wg sync.WaitGroup // one goroutine per batch
	for _, batch := range batches.All() {
		wg.Go(func() {
			errs := client.sendRenewals(ctx, now, batch)
			mu.Lock()
			defer mu.Unlock()
			for i, r := range batch {
				failed[r.lease] = errs[i]
			}
		})
	}
	wg.Wait()
	for _, l := range leases {
		err := failed[l]
		if err == nil && !l.Valid() {
			err = l.lostError()
		}
		if err != nil {
			return opError("extend", l.name, err)
		}
	}
	return nil
}
