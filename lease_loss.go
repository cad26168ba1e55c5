package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// The causes of a loss.
var (
	errExpired   = fmt.Errorf("%w: it could not be renewed before its deadline", ErrLost)
	errTakenAway = fmt.Errorf("%w: the store no longer has it", ErrLost)
	errMaxHold   = fmt.Errorf("%w: %w", ErrLost, ErrMaxHold)
	errStalled   = fmt.Errorf("%w: %w", ErrLost, ErrStalled)
	errReleased  = fmt.Errorf("%w: it was released", ErrLost)
)

// LossCause names in a word why a lease was lost, for metrics and logs, from an error
// that is ErrLost: "deadline" if it could not be renewed in time, "max-hold",
// "stalled", "broken", "left", "overtaken" if this client was granted the lock again
// with a greater token, and "taken" if the store does not have it and gives no reason.
// It returns "" for other errors.
func LossCause(err error) string {
	if !isLost(err) {
		return ""
	}
	for _, c := range lossCauses {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "taken"
}

var lossCauses = [...]struct {
	err  error
	name string
}{
	{ErrMaxHold, "max-hold"}, {ErrStalled, "stalled"}, {ErrBroken, "broken"}, {ErrLeft, "left"},
	{errExpired, "deadline"}, {errOvertaken, "overtaken"},
}

// lose ends the lease without a release. Loss is final: a later reply to a renewal changes
// nothing. lose does nothing if the lease has ended.
func (l *Lease) lose(cause error) {
	l.mu.Lock()
	if l.state != stateHeld {
		l.mu.Unlock()
		return
	}
	l.state, l.lost = stateLost, cause
	l.tellLostLocked(l.background(), cause)
	l.mu.Unlock()
	l.client.leases.remove(l)
	l.endContext()
}

// lostError returns why the lease has ended.
func (l *Lease) lostError() error { return cmp.Or(l.lostBefore(), l.closedBefore(), errReleased) }

// lostBefore returns why the lease was lost or left before Release, or nil.
func (l *Lease) lostBefore() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// lostMeanwhile returns why the lease was lost during a request, or nil. INVARIANT I3: the reply
// may come after the deadline.
func (l *Lease) lostMeanwhile() error {
	l.Valid() // ends the lease if its deadline has passed
	return l.lostBefore()
}

// isLost reports whether err wraps ErrLost.
func isLost(err error) bool { return errors.Is(err, ErrLost) }

// hear makes the client listen for the engine's loss messages. stop ends that.
func (c *Client) hear() (stop func()) {
	if c.features.LossTeller == nil {
		return func() {}
	}
	return c.features.LossTeller.OnLoss(c.onLoss)
}

// onLoss handles a loss message of the engine, which may be about a lease of any client. A message
// can end a lease too early, but cannot keep one alive: INVARIANT I3 does not depend on messages.
func (c *Client) onLoss(loss driver.Loss) {
	for _, l := range c.leases.named(loss.Name) {
		switch loss.LeaseID {
		case "":
			for ; l != nil; l = l.successor() {
				l.look()
			}
		case l.id:
			for ; l != nil; l = l.successor() {
				l.lose(lossCause(loss.Err))
			}
		}
	}
}

// look checks whether the lease is lost: it renews the lease now, or verifies it if the
// keep-alive does not renew it.
func (l *Lease) look() {
	now := time.Now()
	l.mu.Lock()
	renews := l.state == stateHeld && l.term.renews()
	if renews {
		l.term = l.term.hurried(now)
	}
	l.mu.Unlock()
	if renews {
		l.client.leases.update(renewal{lease: l})
		return
	}
	l.client.spawn(func(ctx context.Context) { _ = l.Verify(ctx) }) // ends the lease if it is lost
}

// lossCause returns the cause with which the context of a lost lease ends, from the store's
// error.
func lossCause(err error) error {
	if errors.Is(err, ErrBroken) {
		return err
	}
	return errTakenAway
}

// The limits of an inquiry into why leases of one batch were lost: its time, and its number of
// leases. A loss of more leases is hardly ever a break; the store has lost its data.
const (
	inquiryLimit = 250 * time.Millisecond
	inquiryMost  = 16
)

// gone ends a lease that the store does not have. It returns why the lease has ended.
func (l *Lease) gone(ctx context.Context) error {
	l.lose(l.whyGone(ctx))
	return l.lostError()
}

// whyGone asks the store why it does not have the lease.
func (l *Lease) whyGone(ctx context.Context) error {
	q := inquiry{client: l.client}
	return q.cause(ctx, l)
}

// An inquiry finds out why leases were lost. It sends requests of its own, so that renewals need
// not carry the reason.
type inquiry struct {
	client *Client
	asked  int
	end    time.Time
}

// cause returns why l, which the store does not have, was lost.
func (q *inquiry) cause(ctx context.Context, l *Lease) error {
	breaker := q.client.features.Breaker
	if q.asked == 0 {
		q.end = time.Now().Add(inquiryLimit)
	}
	if q.asked++; breaker == nil || q.asked > inquiryMost {
		return errTakenAway
	}
	ctx, cancel := context.WithDeadline(ctx, q.end)
	defer cancel()
	broken, err := breaker.Breaks(ctx, l.name)
	if err != nil {
		q.asked = inquiryMost // do not ask about further leases
		return errTakenAway
	}
	for _, b := range broken {
		if l.id.Is(b.LeaseID) {
			return b.Err()
		}
	}
	return errTakenAway
}

// Verify checks with the store that the lease is live, by an Extend of MinTTL, which does not
// shorten it. It returns ErrLost if the lease is not live, or its deadline has passed before the
// reply; the lease then is lost for good.
// Any other error means that the store gave no answer, and changes nothing.
func (l *Lease) Verify(ctx context.Context) error {
	if !l.beginVerify() {
		return opError("verify", l.name, l.lostError())
	}
	request, cancel := l.client.requestContext(ctx)
	defer cancel()
	// Unlike Inspect, an Extend names one lease ID, and does not make the store show the IDs of
	// other leases.
	err := l.client.engine.Extend(request, []driver.ExtendRequest{{Name: l.name, LeaseID: l.id, TTL: MinTTL}})[0]
	l.endVerify()
	switch {
	case isLost(err): // before Harmless, whose error may wrap the loss of another lease, which has ended ctx
		err = l.gone(ctx)
	case err != nil:
		err = ask.Harmless(request, err)
	default:
		err = l.lostMeanwhile()
	}
	return opError("verify", l.name, err)
}

// beginVerify notes that the request is about to be sent. It returns false if the lease has
// ended. INVARIANT I9: Release waits for the request.
func (l *Lease) beginVerify() bool {
	if !l.Valid() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beginLocked(extension{stored: MinTTL}, l.client.now())
}

// endVerify notes the end of the request.
func (l *Lease) endVerify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = l.term.landed(extension{stored: MinTTL}, false, l.client.now())
	l.landLocked()
}
