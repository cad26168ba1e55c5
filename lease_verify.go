package holdfast

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Verify checks with the store that the lease is live, by an Extend of MinTTL, which does not
// shorten it. It returns ErrLost if the lease is not live; the lease then is lost for good.
// Any other error means that the store gave no answer, and changes nothing.
func (l *Lease) Verify(ctx context.Context) error {
	if !l.beginVerify() {
		return opError("verify", l.name, l.lostError())
	}
	err := l.verify(ctx)
	l.endVerify()
	if isLost(err) {
		err = l.gone(ctx)
	}
	return opError("verify", l.name, err)
}

// verify sends the request. Unlike Inspect, an Extend names one lease ID, and does not make the
// store show the IDs of other leases.
func (l *Lease) verify(ctx context.Context) error {
	ctx, cancel := l.client.requestContext(ctx)
	defer cancel()
	req := driver.ExtendRequest{Name: l.name, LeaseID: l.id, TTL: MinTTL}
	return ask.Harmless(ctx, l.client.engine.Extend(ctx, []driver.ExtendRequest{req})[0])
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
