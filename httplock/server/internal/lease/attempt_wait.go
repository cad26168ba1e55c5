package lease

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/wait"
	"github.com/holdfast-locks/holdfast/wire"
)

// leastWaiterTTL is the shortest waiter TTL. The place must last until the next request of a
// client, which may be far away.
const leastWaiterTTL = 2 * time.Second

// waited does as Wait, without the limits on leases.
func (a *Attempt) waited(ctx context.Context, limit time.Duration, changed func(driver.Blocker)) (Grant, error) {
	a.began = time.Now()
	w := waiter{Attempt: a, end: a.began.Add(limit), changed: changed}
	w.wait.Places, w.wait.Closing = &a.store.places, a.store.House.Draining
	if limit > 0 {
		leave, err := a.R.House.Limits.Waiter(a.R.Caller)
		if err != nil {
			return Grant{}, err
		}
		defer leave()
		w.wait.Enter(&w.Req, max(w.TTL(), leastWaiterTTL))
		defer w.wait.Stop() // the place stays
	}
	for {
		reply, sent, err := a.send(ctx)
		w.wait.Tried = sent
		switch {
		case err == nil && reply.Outcome == driver.Granted:
			return a.recognise(ctx, Grant{Token: reply.Token, Sent: sent})
		case err == nil && reply.Outcome == driver.Repeated:
			if err := a.meet(ctx); err != nil {
				return Grant{}, err
			}
			a.unseen = !a.seen.there
			continue
		case err == nil && reply.Outcome != driver.Held:
			return Grant{}, a.refused(reply)
		case err == nil:
			w.blocked(reply.Blocker, sent)
			a.Req.First = a.Req.First && reply.Place == 0 // a new place is this attempt's
			if other := a.otherRequest(reply.Holder.Fingerprint); other != nil {
				if handedOver, err := w.giveUp(ctx); !handedOver {
					return Grant{}, cmp.Or(err, other)
				}
				continue
			}
		case driver.Permanent(err), ctx.Err() != nil:
			return Grant{}, a.Failed(err)
		}
		if !time.Now().Before(w.end) || w.R.NewWork() != nil {
			if err != nil {
				return Grant{}, a.Failed(err)
			}
			handedOver, err := w.last(ctx)
			if !handedOver {
				return Grant{}, err
			}
			continue
		}
		if w.pause(ctx, err != nil); ctx.Err() != nil {
			return Grant{}, ask.ContextError(ctx)
		}
	}
}

// A waiter is an attempt that waits between its requests.
type waiter struct {
	*Attempt
	wait    wait.Waiter[time.Time]
	end     time.Time            // the last request is sent then
	changed func(driver.Blocker) // may be nil
	knows   bool                 // changed was called
}

// blocked notes the blocker in the reply to a request that was sent at sent.
func (w *waiter) blocked(b driver.Blocker, sent time.Time) {
	was := w.Blocker
	w.Blocker, w.sent = b, sent
	if w.changed != nil && (!w.knows || was.Place != b.Place || was.Queue != b.Queue || was.Holder.String() != b.Holder.String()) {
		w.knows = true
		w.changed(b)
	}
}

// pause waits until the next request is due, or until the end.
func (w *waiter) pause(ctx context.Context, failed bool) {
	ctx, cancel := context.WithDeadline(ctx, w.end)
	defer cancel()
	_ = w.wait.Pause(ctx, &w.Req, &w.Blocker, failed, func(n wait.Update[time.Time]) wait.Next {
		switch {
		case n.Granted:
			return wait.Done // the next request is granted the whole TTL
		case n.Err == nil:
			w.blocked(*n.Blocker, n.Sent)
		case driver.Permanent(n.Err):
			return wait.Retry // the next request finds out why, or gets another place
		}
		return wait.Stay
	})
}

// held returns the refusal of a request for a lock that others hold.
func (a *Attempt) held() error {
	b := a.Blocker
	holders := []wire.Blocker{wire.BlockerOf(b)}
	refusal := &door.Refusal{
		Status: http.StatusConflict, Code: "lock-held", Again: again(&b), Detail: a.about(b.Possession()),
		More: func(p *wire.Problem) { p.Holders, p.QueueLength, p.Place = holders, &b.Queue, b.Place },
	}
	if a.Req.Once {
		refusal.Code = "in-progress"
	}
	return refusal
}

// again returns when to retry. The expiry of a lease matters only if it is not renewed.
func again(b *driver.Blocker) time.Duration {
	if b.Released || b.Holder.Person {
		return max(b.ExpiresIn, time.Second)
	}
	return time.Second
}

// refused returns the refusal for any outcome but Granted and Held.
func (a *Attempt) refused(reply driver.AcquireReply) error {
	switch reply.Outcome {
	case driver.Recorded:
		return a.Recorded(reply.Record)
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

// Failed adds the operation and the name to an error of the store.
func (a *Attempt) Failed(err error) error { return fmt.Errorf("%s: %w", a.about(""), err) }

func (a *Attempt) about(what string) string {
	verb := "acquire"
	switch {
	case a.Req.Once:
		verb = "once"
	case a.Req.Holder.Person:
		verb = "hold"
	}
	text := fmt.Sprintf("%s %q", verb, a.Req.Name)
	if what != "" {
		text += ": " + what
	}
	return text
}
