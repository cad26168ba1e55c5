// Package wait pauses between the requests for a lock that is held: in the queue of the
// store, or for a polling interval if the engine has no queue. The client library uses it in
// Acquire, and the server for its clients.
//
// # Concurrency
//
// A Waiter must be used by one goroutine, and starts none.
package wait

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// PollLongest is the longest pause between two requests of a waiter if the engine has no
	// queue.
	PollLongest = 250 * time.Millisecond

	// expiryJitter spreads the requests of waiters for the same expiry.
	expiryJitter = 20 * time.Millisecond
)

// A Waiter is one wait for a lock. Its owner sends the requests, and calls Pause after each
// request that got no lease. I is an instant of the owner's clocks.
type Waiter[I any] struct {
	Places  *places.Keeper[I]
	Closing <-chan struct{} // ends each pause
	All     bool            // the owner hears of each refresh, not only of changes

	Tried  time.Time // when the last request was sent; the owner sets it
	Silent time.Time // when the first refresh was sent that was unanswered at the end of the wait; zero if there was none

	watch   driver.Watch  // nil without a queue
	ttl     time.Duration // the TTL of the lease
	polling ask.Backoff   // the pauses without a queue
	failing ask.Backoff   // the pauses while the store does not answer
}

// Enter makes req a request for a place, if the engine has a queue, and begins to watch for
// notices. It must be called before the request is sent, so that no notice is missed. The caller
// must call Stop.
func (w *Waiter[I]) Enter(req *driver.AcquireRequest, ttl time.Duration) {
	if w.Places.Queuer != nil {
		w.watch, w.ttl = w.Places.Queuer.Watch(req.LeaseID), ttl
		req.Queue, req.WaiterTTL = true, w.Places.Enter(ttl)
	}
}

// Rewatch watches another lease ID from now on.
func (w *Waiter[I]) Rewatch(id lockinfo.LeaseID) {
	if w.watch != nil {
		w.watch.Stop()
		w.watch = w.Places.Queuer.Watch(id)
	}
}

// Stop ends the watch. The place stays in the queue until it expires.
func (w *Waiter[I]) Stop() {
	if w.watch != nil {
		w.watch.Stop()
		w.watch = nil
		w.Places.Exit()
	}
}

// An Update is a notice of a grant, or the reply to a refresh, or its error.
type Update[I any] struct {
	Granted bool
	Notice  bool // it may be about an earlier place of the same lease ID
	Token   uint64
	Sent    I               // when the refresh was sent
	Blocker *driver.Blocker // from the reply to a refresh
	Err     error
}

// Next is what the owner does after an update.
type Next int

// What the owner does next. A waiter that stays after a notice of a grant refreshes its place soon.
const (
	Stay  Next = iota // stay in the queue
	Retry             // send a request, LookAgain after the last one at the earliest
	Done              // end the pause at once
)

// Pause sleeps after a request that got no lease: in the queue, if blocker has a place, and
// otherwise until another request may succeed. failed means that the store has not answered.
// Pause calls heard for each change of the place, after it has set the place's waiter TTL in req.
// It returns the error of ctx if ctx has ended. INVARIANT I7: notices do not lead to a request
// within places.LookAgain of the last one.
func (w *Waiter[I]) Pause(ctx context.Context, req *driver.AcquireRequest, blocker *driver.Blocker, failed bool, heard func(Update[I]) Next) error {
	if failed {
		return w.Sleep(ctx, w.failing.Next(ask.LastPause))
	}
	w.failing = ask.Backoff{}
	if blocker.Place == 0 {
		return w.Sleep(ctx, w.pollPause(blocker.ExpiresIn))
	}
	retry, err := w.await(ctx, req, blocker, heard)
	if retry {
		err = w.Sleep(ctx, w.tooSoon())
	}
	return err
}

// await waits in the queue, where the place keeper refreshes the place.
func (w *Waiter[I]) await(ctx context.Context, req *driver.AcquireRequest, blocker *driver.Blocker, heard func(Update[I]) Next) (retry bool, err error) {
	p := w.Places.Join(driver.RefreshRequest{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: req.WaiterTTL}, w.ttl, blocker, w.All)
	defer w.Places.Leave(p)
	for {
		next := Stay
		select {
		case notice := <-w.watch.C():
			if notice.Token != 0 {
				w.catchUp(p, req, heard)
				next = heard(Update[I]{Granted: true, Notice: true, Token: notice.Token})
			}
			if next == Stay {
				w.Places.Hurry(p)
			}
		case r := <-p.Answers:
			w.catchUp(p, req, heard)
			next = answered(req, r, heard)
		case <-w.Closing:
			next = Retry
		case <-ctx.Done():
			w.catchUp(p, req, heard)
			w.Silent = w.Places.Unanswered(p)
			return false, ctx.Err()
		}
		if next != Stay {
			return next == Retry, nil
		}
	}
}

// catchUp calls heard for the last reply without a change: the place lasts from that request on.
func (w *Waiter[I]) catchUp(p *places.Place[I], req *driver.AcquireRequest, heard func(Update[I]) Next) {
	if r := w.Places.Quiet(p); r.Reply != nil {
		answered(req, r, heard)
	}
}

// answered calls heard for the reply to a refresh.
func answered[I any](req *driver.AcquireRequest, r places.Refresh[I], heard func(Update[I]) Next) Next {
	reply := r.Reply
	if reply.Err == nil && reply.Outcome == driver.Held {
		req.WaiterTTL = r.WaiterTTL
	}
	return heard(Update[I]{
		Granted: reply.Err == nil && reply.Outcome == driver.Granted, Token: reply.Token,
		Sent: r.Sent, Blocker: &reply.Blocker, Err: reply.Err,
	})
}

// tooSoon returns how long the owner must wait before the next request; 0 or less if it may send
// one now.
func (w *Waiter[I]) tooSoon() time.Duration { return time.Until(w.Tried.Add(places.LookAgain)) }

// Sleep returns nil after d, or when a notice arrives: the next request then learns its meaning. It
// returns the error of ctx if ctx ends first.
func (w *Waiter[I]) Sleep(ctx context.Context, d time.Duration) error {
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
		case <-w.Closing:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pollPause returns how long to sleep without a queue. The lease in the way lasts for another
// expiresIn.
func (w *Waiter[I]) pollPause(expiresIn time.Duration) time.Duration {
	pause := w.polling.Next(PollLongest)
	if expiresIn != lockinfo.Never {
		pause = min(pause, max(expiresIn, 0)+places.ExpirySlack+rand.N(expiryJitter))
	}
	return pause
}
