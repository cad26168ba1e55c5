package holdfast

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

const (
	// The waiter TTL is how long a dead waiter may delay the queue, and how
	// long a lease lasts at first that was handed to a waiter: as long as the
	// TTL, within these bounds; but where a client has more waiters than 1,666,
	// waiterTTLEach for each of them, if the TTL is as long. INVARIANT I7.
	waiterTTLShortest = 500 * time.Millisecond
	waiterTTLLongest  = 5 * time.Second
	waiterTTLEach     = refreshPart * (time.Second / 1000) // about 1,000 refreshes a second

	// pollLongest is for engines without a queue: how long a release may go
	// unnoticed. expiryJitter spreads those who wait for the same expiry.
	pollLongest  = 250 * time.Millisecond
	expiryJitter = 20 * time.Millisecond
)

// A waiter is an acquisition that makes its attempts, and sleeps between them.
type waiter struct {
	acquisition
	watch   driver.Watch // nil if the engine has no queue
	polling ask.Backoff  // without a queue
	failing ask.Backoff  // while the store does not answer
	tried   time.Time    // when the last attempt was sent
	waits   bool         // and do not only try
	shown   *WaitState   // what OnWait knows; nil if nothing
}

// ask makes the request one for a place, if the engine has a queue. The watch
// comes first, so that no notice is missed.
func (w *waiter) ask() {
	queuer := w.client.features.Queuer
	if queuer == nil {
		return
	}
	w.stop()
	w.watch = queuer.Watch(w.req.LeaseID)
	longest := max(waiterTTLLongest, time.Duration(w.client.places.waiters.Add(1))*waiterTTLEach)
	w.req.Queue = true
	w.req.WaiterTTL = min(max(w.opts.TTL, waiterTTLShortest), longest)
}

// stop ends the watch.
func (w *waiter) stop() {
	if w.watch != nil {
		w.watch.Stop()
		w.watch = nil
		w.client.places.waiters.Add(-1)
	}
}

// pause sleeps after an attempt that got no lease. It returns the lease if the
// store handed it over, nothing when it is time for the next attempt, or ctx's
// error. INVARIANT I7: a message may lead to an attempt, but never within
// lookAgain of the previous one.
func (w *waiter) pause(ctx context.Context) (*Lease, error) {
	if w.failures > 0 {
		return nil, w.sleep(ctx, w.failing.Next(ask.LastPause))
	}
	w.failing = ask.Backoff{}
	if w.blocker.Place == 0 {
		return nil, w.sleep(ctx, w.pollPause())
	}
	lease, err := w.await(ctx)
	if lease == nil && err == nil {
		err = w.sleep(ctx, w.tooSoon())
	}
	return lease, err
}

// tooSoon returns how long there must be no attempt yet; 0 or less if there may
// be one.
func (w *waiter) tooSoon() time.Duration { return time.Until(w.tried.Add(lookAgain)) }

// sleep returns nil after d, or at a notice, whose meaning the next attempt finds
// out, or ctx's error.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	var notice <-chan driver.Notice
	if w.watch != nil {
		notice = w.watch.C()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-notice:
			left := w.tooSoon()
			if left <= 0 {
				return nil
			}
			notice = nil
			timer.Reset(left)
		case <-w.client.closing:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pollPause returns how long to sleep where there is no queue.
func (w *waiter) pollPause() time.Duration {
	pause := w.polling.Next(pollLongest)
	if left := w.blocker.ExpiresIn; left != Never {
		pause = min(pause, max(left, 0)+expirySlack+rand.N(expiryJitter))
	}
	return pause
}

// courtesy returns how long to leave the lock to others before the first
// attempt, where there is no queue: half of the time that is left at most.
// Do-once work is not wanted twice.
func (w *waiter) courtesy(ctx context.Context) time.Duration {
	if w.req.Once {
		return 0
	}
	d := w.client.turns.pause(w.req.Name)
	if end, ok := ctx.Deadline(); ok && d > 0 {
		d = min(d, time.Until(end)/2)
	}
	return d
}

// await waits in the queue, where the place keeper refreshes the place.
func (w *waiter) await(ctx context.Context) (*Lease, error) {
	places := &w.client.places
	p := places.join(driver.RefreshRequest{Name: w.req.Name, LeaseID: w.req.LeaseID, WaiterTTL: w.req.WaiterTTL}, *w.blocker)
	defer places.leave(p)
	for {
		select {
		case notice := <-w.watch.C():
			// After a lost reply the notice may be about an earlier place of
			// the same lease ID: then only the store can tell.
			if notice.Token != 0 && !w.uncertain {
				return w.handedOver(notice.Token), nil
			}
			places.hurry(p)
		case r := <-p.answers:
			switch {
			case r.reply.Err == nil && r.reply.Outcome == driver.Granted:
				return w.found(r.reply.Token), nil
			case r.reply.Err == nil:
				w.queued = r.sent
				w.answered()
				w.blocked(r.reply.Blocker)
				w.tellPlace()
				w.tellState()
			case driver.Permanent(r.reply.Err):
				w.startOver() // the next attempt asks for another place, or says why not
				return nil, nil
			default:
				w.countFailure(r.sent.mono)
				w.suffer(r.reply.Err)
			}
		case <-w.client.closing:
			return nil, nil
		case <-ctx.Done():
			if sent := places.unanswered(p); !sent.IsZero() {
				w.countFailure(sent)
			}
			return nil, ctx.Err()
		}
	}
}
