package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// attempt sends one request.
func (w *waiter) attempt(ctx context.Context) (*Lease, error) {
	if w.client.isClosed() {
		return nil, ErrClosed
	}
	sent := w.client.now()
	ctx, cancel := ask.LimitUntil(ctx, sent.mono.Add(w.client.opts.RequestTimeout))
	defer cancel()
	reply, err := w.send(ctx, sent)
	if err == nil && reply.Outcome == driver.Spent {
		w.startOver()
		sent = w.client.now()
		reply, err = w.send(ctx, sent)
	}
	if err != nil {
		err = w.failed(sent.mono, ctx, err)
		w.suffer(err)
		return nil, err
	}
	switch reply.Outcome {
	case driver.Granted:
		return w.granted(sent, reply)
	case driver.Held:
		w.answered()
		w.blocked(reply.Blocker)
		if reply.Place > 0 {
			w.queued = sent
		}
		if w.waits {
			w.client.turns.refused(w.req.Name)
		}
		if w.req.Once { // the result of another request is not worth waiting for
			if err := compareFingerprints(reply.Holder.Fingerprint, w.req.Holder.Fingerprint); err != nil {
				return nil, err
			}
		}
		return nil, w.heldError(0)
	case driver.Recorded:
		w.record = reply.Record
		return nil, errRecorded
	case driver.Spent:
		w.startOver()
		w.countFailure(sent.mono)
		return nil, fmt.Errorf("%w: it grants neither of two lease IDs", ErrUnavailable)
	}
	return nil, fmt.Errorf("%w: the request was cancelled", ErrLost)
}

// send sends the request once. INVARIANT I3: the clock starts, at sent, before the
// first byte is written.
func (w *waiter) send(ctx context.Context, sent instant) (driver.AcquireReply, error) {
	w.tried = sent.mono
	w.sent++
	return w.client.engine.Acquire(ctx, w.req)
}

// errRecorded: the request asked for Once, and the name has a record.
var errRecorded = errors.New("the name has a record")

// granted makes the lease, unless the answer came too late to be of use.
func (w *waiter) granted(sent instant, reply driver.AcquireReply) (*Lease, error) {
	if reply.Acked < w.req.Replicas {
		w.uncertain = true // it was granted, and is to be cancelled
		return nil, fmt.Errorf("%w: %d of %d replicas have acknowledged the lease", ErrNotReplicated, reply.Acked, w.req.Replicas)
	}
	now := w.client.now()
	t, ok := w.newTerm().granted(sent, now, w.client.leases.pace())
	if !ok {
		took := now.mono.Sub(sent.mono)
		w.startOver() // the store may still hold the lock for us
		w.countFailure(sent.mono)
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, driver.Span(took), w.opts.TTL)
	}
	w.answered()
	l, ahead := w.client.newLease(&w.acquisition, reply.Token, reply.Acked, t)
	if ahead != nil {
		return nil, w.overtaken(ahead)
	}
	return l, nil
}

// handedOver returns the lease that the store has handed over, or nil if there
// has to be another attempt.
//
// The lease ends with the place; the keep-alive soon asks for the whole TTL.
func (w *waiter) handedOver(token uint64) *Lease {
	w.handed = true
	t, ok := w.newTerm().handedOver(w.queued, w.client.now(), w.req.WaiterTTL, w.client.leases.pace())
	switch {
	case w.opts.WholeTTL || w.opts.LockDelay > 0 || w.req.Replicas > 0:
		// The caller wants all of it, the delay must follow the lease even if
		// we die at once, and the replicas must know of it: repeat the request,
		// which is answered with the whole lease. If that is over by then, the
		// repeat has a place like any other request; an old notice of this grant
		// leads to no more than another repeat.
		return nil
	case !ok:
		w.startOver() // the store may still hold the lock for us
		return nil
	}
	w.answered()
	l, ahead := w.client.newLease(&w.acquisition, token, 0, t)
	if ahead != nil {
		_ = w.overtaken(ahead) // the next attempt finds out more
	}
	return l
}

// found is handedOver for what an answer of the store has told, which is about
// the lease ID as it is now. If the last news of our place is so old that the
// lease may not be trusted, it is asked for once more.
func (w *waiter) found(token uint64) *Lease {
	if placeOver(w.queued, w.client.now(), w.req.WaiterTTL) {
		w.uncertain = true // news may be of this grant, and the next attempt get another
		return nil
	}
	return w.handedOver(token)
}

// overtaken drops a grant although the store has made it, because this client has
// a lease of the name with a greater token: the answer was late, and what it
// granted is gone, or the store has lost its count. The later lease is in the way.
func (w *waiter) overtaken(ahead *Lease) error {
	w.startOver() // the store may still hold the lock for us
	w.answered()
	w.blocked(driver.Blocker{Holder: *ahead.holder, ExpiresIn: ahead.Remaining()})
	return w.heldError(0)
}

// startOver abandons the present lease ID and draws another for the next attempt.
// A late notice about the old one is then not taken for the new one, and
// cancelling the old one does not undo the new one.
func (w *waiter) startOver() {
	w.cancelRequest()
	w.req.LeaseID, w.uncertain, w.queued, w.handed = driver.NewLeaseID(), false, instant{}, false
	if w.watch != nil {
		w.ask()
	}
}
