package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Downgrade turns an exclusive lease into a shared one: no other client has the
// lock in between, those who wait to share it get it at once, and the lease
// goes on with its token and its deadline. There is no way back. On a shared
// lease it does nothing.
//
// It returns ErrLost if the lease is not live, or its deadline has passed before the reply; the
// lease then is lost for good.
// ErrOutcomeUnknown means that other clients may already share the lock; the call may be
// repeated. It returns ErrInvalid for the lease of a semaphore, and ErrUnsupported if the
// engine has no shared locks.
func (l *Lease) Downgrade(ctx context.Context) error {
	return opError("downgrade", l.name, l.downgrade(ctx))
}

func (l *Lease) downgrade(ctx context.Context) error {
	engine := l.client.features.Downgrader
	switch {
	case l.Mode().Limit() != 0:
		return fmt.Errorf("%w lease: a semaphore has no exclusive one", ErrInvalid)
	case engine == nil:
		return fmt.Errorf("shared mode is %w", ErrUnsupported)
	}
	l.mu.Lock()
	l.single = true // no exclusive lease may follow: INVARIANT I1
	l.mu.Unlock()
	if !l.Valid() {
		return l.lostError()
	}
	ctx, cancel := l.client.requestContext(ctx)
	defer cancel()
	err := engine.Downgrade(ctx, driver.DowngradeRequest{Name: l.name, LeaseID: l.id})
	switch {
	case isLost(err):
		return l.gone(ctx)
	case err != nil:
		return ask.Effective(ctx, err)
	}
	l.mu.Lock()
	l.mode = Shared
	l.mu.Unlock()
	return l.lostMeanwhile()
}
