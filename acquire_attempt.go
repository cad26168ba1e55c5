package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// attempt sends one request, or two if the first lease ID is spent. If it returns ErrHeld,
// a.blocker has the lock.
func (a *acquisition) attempt(ctx context.Context) (*Lease, error) {
	if a.client.isClosed() {
		return nil, ErrClosed
	}
	sent := a.client.now()
	ctx, cancel := ask.LimitUntil(ctx, sent.Mono.Add(a.client.opts.RequestTimeout))
	defer cancel()
	var reply driver.AcquireReply
	var err error
	for again := false; ; again = true {
		a.wait.Tried = sent.Mono
		a.report.sent++
		// INVARIANT I3: the clock starts, at sent, before the first byte is written.
		reply, err = a.client.engine.Acquire(ctx, a.req)
		if again || err != nil || reply.Outcome != driver.Spent {
			break
		}
		a.startOver()
		sent = a.client.now()
	}
	if err != nil {
		err = a.failed(sent.Mono, ctx, err)
		a.suffer(err)
		return nil, err
	}
	switch reply.Outcome {
	case driver.Granted:
		return a.granted(sent, reply)
	case driver.Held:
		a.answered()
		a.blocked(reply.Blocker)
		if reply.Place > 0 {
			a.queued = sent
		}
		if a.waits {
			a.client.turns.Refused(a.req.Name)
		}
		if a.req.Once { // the result of another request is not worth waiting for
			if err := compareFingerprints(reply.Holder.Fingerprint, a.req.Holder.Fingerprint); err != nil {
				return nil, err
			}
		}
		return nil, ErrHeld
	case driver.Recorded:
		a.record = reply.Record
		return nil, errRecorded
	case driver.Spent:
		a.startOver()
		a.countFailure(sent.Mono)
		return nil, fmt.Errorf("%w: it grants neither of two lease IDs", ErrUnavailable)
	}
	return nil, fmt.Errorf("%w: the request was cancelled", ErrLost)
}

// errRecorded: the request has Once set, and the name has a record.
var errRecorded = errors.New("the name has a record")

// granted makes the lease, unless the answer came too late to be of use.
func (a *acquisition) granted(sent instant, reply driver.AcquireReply) (*Lease, error) {
	if reply.Acked < a.req.Replicas {
		a.uncertain = true // it was granted, and is to be cancelled
		return nil, fmt.Errorf("%w: %d of %d replicas have acknowledged the lease", ErrNotReplicated, reply.Acked, a.req.Replicas)
	}
	now := a.client.now()
	t, ok := a.newTerm().granted(sent, now, a.client.leases.pace())
	if !ok {
		took := now.Mono.Sub(sent.Mono)
		a.startOver() // the store may still hold the lock for us
		a.countFailure(sent.Mono)
		return nil, fmt.Errorf("%w: it answered after %s, too late for a TTL of %s", ErrUnavailable, lockinfo.Span(took), a.opts.TTL)
	}
	a.answered()
	l, ahead := a.client.newLease(a, reply.Token, reply.Acked, t)
	if ahead != nil {
		a.overtaken(ahead)
		return nil, ErrHeld
	}
	return l, nil
}

// handedOver returns the lease that the store has handed over, or nil if there
// has to be another attempt.
//
// The lease ends with the place; the keep-alive soon requests the whole TTL.
func (a *acquisition) handedOver(token uint64) *Lease {
	a.report.handed = true
	t, ok := a.newTerm().handedOver(a.queued, a.client.now(), a.req.WaiterTTL, a.client.leases.pace())
	switch {
	case a.opts.WholeTTL || a.opts.LockDelay > 0 || a.req.Replicas > 0:
		// The caller wants all of it, the delay must follow the lease even if
		// we die at once, and the replicas must know of it: repeat the request,
		// which is answered with the whole lease. If the lease has ended by then, the
		// repeat has a place like any other request; an old notice of this grant
		// leads to no more than another repeat.
		return nil
	case !ok:
		a.startOver() // the store may still hold the lock for us
		return nil
	}
	a.answered()
	l, ahead := a.client.newLease(a, token, 0, t)
	if ahead != nil {
		a.overtaken(ahead) // the next attempt finds out more
	}
	return l
}

// found is handedOver for an answer of the store, which is about the present
// lease ID. If the last news of our place is so old that the
// lease may not be trusted, found requests it once more.
func (a *acquisition) found(token uint64) *Lease {
	if placeOver(a.queued, a.client.now(), a.req.WaiterTTL) {
		a.uncertain = true // news may be of this grant, and the next attempt get another
		return nil
	}
	return a.handedOver(token)
}

// overtaken drops a grant although the store has made it, because this client has
// a lease of the name with a greater token: the answer was late, and what it
// granted is gone, or the store has lost its count. The later lease is in the way.
func (a *acquisition) overtaken(ahead *Lease) {
	a.startOver() // the store may still hold the lock for us
	a.answered()
	a.blocked(driver.Blocker{Holder: *ahead.holder, ExpiresIn: ahead.Remaining()})
}

// startOver abandons the present lease ID and draws another for the next attempt.
// A late notice about the old one is then not taken for the new one, and
// cancelling the old one does not undo the new one.
func (a *acquisition) startOver() {
	a.cancelRequest()
	a.req.LeaseID, a.uncertain, a.queued, a.report.handed = lockinfo.NewLeaseID(), false, instant{}, false
	a.wait.Rewatch(a.req.LeaseID)
}
