package holdfast

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
)

const (
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
	w.req.Queue, w.req.WaiterTTL = true, w.client.places.Enter(w.opts.TTL)
}

// stop ends the watch.
func (w *waiter) stop() {
	if w.watch != nil {
		w.watch.Stop()
		w.watch = nil
		w.client.places.Exit()
	}
}

// pause sleeps after an attempt that got no lease. It returns the lease if the
// store handed it over, nothing when it is time for the next attempt, or ctx's
// error. INVARIANT I7: a message may lead to an attempt, but never within
// places.LookAgain of the previous one.
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
func (w *waiter) tooSoon() time.Duration { return time.Until(w.tried.Add(places.LookAgain)) }

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
		pause = min(pause, max(left, 0)+places.ExpirySlack+rand.N(expiryJitter))
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
	keeper := &w.client.places
	p := keeper.Join(driver.RefreshRequest{Name: w.req.Name, LeaseID: w.req.LeaseID, WaiterTTL: w.req.WaiterTTL}, *w.blocker)
	defer keeper.Leave(p)
	for {
		select {
		case notice := <-w.watch.C():
			// After a lost reply the notice may be about an earlier place of
			// the same lease ID: then only the store can tell.
			if notice.Token != 0 && !w.uncertain {
				return w.handedOver(notice.Token), nil
			}
			keeper.Hurry(p)
		case r := <-p.Answers:
			switch {
			case r.Reply.Err == nil && r.Reply.Outcome == driver.Granted:
				return w.found(r.Reply.Token), nil
			case r.Reply.Err == nil:
				w.queued = r.Sent
				w.answered()
				w.blocked(r.Reply.Blocker)
				w.tellPlace()
				w.tellState()
			case driver.Permanent(r.Reply.Err):
				w.startOver() // the next attempt asks for another place, or says why not
				return nil, nil
			default:
				w.countFailure(r.Sent.mono)
				w.suffer(r.Reply.Err)
			}
		case <-w.client.closing:
			return nil, nil
		case <-ctx.Done():
			if sent := keeper.Unanswered(p); !sent.IsZero() {
				w.countFailure(sent)
			}
			return nil, ctx.Err()
		}
	}
}
