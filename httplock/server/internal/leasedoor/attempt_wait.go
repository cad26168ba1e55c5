package leasedoor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// leastWaiterTTL is how long a place lasts at least between two requests: the next
	// has to come from the caller, maybe from far away.
	leastWaiterTTL = 2 * time.Second

	// pollLongest is for engines without a queue: how long a release may go unnoticed.
	pollLongest = 250 * time.Millisecond
)

// waited is wait without the limits on leases.
func (a *attempt) waited(ctx context.Context, limit time.Duration, told func(driver.Blocker)) (grant, error) {
	w := waiter{attempt: a, end: time.Now().Add(limit), told: told}
	if limit > 0 {
		leave, err := a.r.House.Limits.Waiter(a.r.Caller)
		if err != nil {
			return grant{}, err
		}
		defer leave()
		defer w.enter()()
	}
	for {
		reply, sent, err := a.ask(ctx)
		w.tried = sent
		switch {
		case err == nil && reply.Outcome == driver.Granted:
			return grant{reply.Token, sent}, nil
		case err == nil && reply.Outcome != driver.Held:
			return grant{}, a.refused(reply)
		case err == nil:
			w.blocked(reply.Blocker, sent)
			if err := a.otherRequest(reply.Holder.Fingerprint); err != nil {
				return grant{}, err
			}
		case driver.Permanent(err), ctx.Err() != nil:
			return grant{}, a.failed(err)
		}
		if !time.Now().Before(w.end) {
			if err != nil {
				return grant{}, a.failed(err)
			}
			return grant{}, a.held()
		}
		if w.pause(ctx, err); ctx.Err() != nil {
			return grant{}, ask.ContextError(ctx)
		}
	}
}

// A waiter is an attempt that sleeps between its requests.
type waiter struct {
	*attempt
	end     time.Time            // the last request is sent then
	told    func(driver.Blocker) // may be nil
	knows   bool                 // told has been called
	tried   time.Time            // when the last request was sent
	watch   driver.Watch         // nil if there is no queue
	polling ask.Backoff          // without a queue
	failing ask.Backoff          // while the store does not answer
}

// enter makes the request one for a place, if the engine has a queue. The watch comes
// first, so that no notice is missed. leave ends it, and leaves the place as it is.
func (w *waiter) enter() (leave func()) {
	queuer := w.door.house.Features.Queuer
	if queuer == nil {
		return func() {}
	}
	w.watch = queuer.Watch(w.req.LeaseID)
	w.req.Queue, w.req.WaiterTTL = true, w.door.places.Enter(max(w.req.TTL, leastWaiterTTL))
	return func() {
		w.watch.Stop()
		w.door.places.Exit()
	}
}

// blocked notes what is in the way, as of a request that was sent at sent.
func (w *waiter) blocked(b driver.Blocker, sent time.Time) {
	was := w.blocker
	w.blocker, w.sent = b, sent
	if w.told != nil && (!w.knows || was.Place != b.Place || was.Queue != b.Queue || was.Holder.String() != b.Holder.String()) {
		w.knows = true
		w.told(b)
	}
}

// pause sleeps until the next request is to be sent: when the lock was handed over, when
// there may be something new, or at the end. failure is why the store has not answered.
func (w *waiter) pause(ctx context.Context, failure error) {
	switch {
	case failure != nil:
		w.sleep(ctx, w.failing.Next(ask.LastPause))
	case w.blocker.Place == 0:
		pause := w.polling.Next(pollLongest)
		if left := w.blocker.ExpiresIn; left != driver.Never {
			pause = min(pause, max(left, 0)+places.ExpirySlack)
		}
		w.sleep(ctx, pause)
	case !w.await(ctx):
		// INVARIANT I7: whatever a waiter is told, it does not spin.
		w.sleep(ctx, time.Until(w.tried.Add(places.LookAgain)))
	}
}

// sleep pauses for d, or until the end.
func (w *waiter) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(min(d, time.Until(w.end)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.door.house.Draining:
		w.end = time.Time{}
	case <-ctx.Done():
	}
}

// await waits in the queue, where the place keeper refreshes the place. It reports whether
// the lock was handed over.
func (w *waiter) await(ctx context.Context) (granted bool) {
	keeper := &w.door.places
	p := keeper.Join(driver.RefreshRequest{Name: w.req.Name, LeaseID: w.req.LeaseID, WaiterTTL: w.req.WaiterTTL}, w.blocker)
	defer keeper.Leave(p)
	timer := time.NewTimer(time.Until(w.end))
	defer timer.Stop()
	for {
		select {
		case notice := <-w.watch.C():
			if notice.Token != 0 {
				return true // the next request is granted the whole TTL
			}
			keeper.Hurry(p)
		case r := <-p.Answers:
			switch {
			case r.Reply.Err == nil && r.Reply.Outcome == driver.Granted:
				return true
			case r.Reply.Err == nil:
				w.blocked(r.Reply.Blocker, r.Sent)
			case driver.Permanent(r.Reply.Err): // the next request finds out why, or gets another place
				return false
			}
		case <-timer.C:
			return false
		case <-w.door.house.Draining:
			w.end = time.Time{}
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// A queuedError is the end of a wait that has kept its place.
type queuedError struct{ queued wire.Queued }

func (e *queuedError) Error() string {
	return fmt.Sprintf("place %d of %d", e.queued.Place, e.queued.QueueLength)
}

// held returns what there is to say when the lock cannot be had now.
func (a *attempt) held() error {
	b := &a.blocker
	holders := []wire.Blocker{wire.BlockerOf(*b)}
	if b.Place > 0 {
		return &queuedError{wire.Queued{
			Place: b.Place, QueueLength: b.Queue, Holders: holders, PlaceExpiresInMS: left(a.req.WaiterTTL, a.sent),
		}}
	}
	refusal := &door.Refusal{
		Status: http.StatusConflict, Code: "lock-held", Again: again(b), Detail: a.about(b.Possession()),
		More: func(p *wire.Problem) { p.Holders, p.QueueLength = holders, &b.Queue },
	}
	if a.req.Once {
		refusal.Code = "in-progress"
	}
	return refusal
}

// again returns when to ask again. What is left of a lease says nothing if it is renewed.
func again(b *driver.Blocker) time.Duration {
	if b.Released || b.Holder.Person {
		return max(b.ExpiresIn, time.Second)
	}
	return time.Second
}

// refused returns what an outcome means that is neither Granted nor Held.
func (a *attempt) refused(reply driver.AcquireReply) error {
	switch reply.Outcome {
	case driver.Recorded:
		return a.recorded(reply.Record)
	case driver.Spent:
		return &door.Refusal{
			Status: http.StatusConflict, Code: "key-spent",
			Detail: a.about("nothing is granted under this Idempotency-Key any more: take another one"),
		}
	}
	return &door.Refusal{
		Status: http.StatusGone, Code: "released",
		Detail: a.about("it was released under this Idempotency-Key: take another one for another lease"),
	}
}

// failed returns an error of the store with what it is about.
func (a *attempt) failed(err error) error { return fmt.Errorf("%s: %w", a.about(""), err) }

func (a *attempt) about(what string) string {
	verb := "acquire"
	switch {
	case a.req.Once:
		verb = "once"
	case a.req.Holder.Person:
		verb = "hold"
	}
	text := fmt.Sprintf("%s %q", verb, a.req.Name)
	if what != "" {
		text += ": " + what
	}
	return text
}
