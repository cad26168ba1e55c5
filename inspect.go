package holdfast

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A LockState is what a store knows of one name: its Name, its Holders (each a Holding), its
// Queue (each a Place; at least the first 256), the QueueLength, and the LastToken that was
// granted. Mode is the holders' common mode, with the sum of their permits. Live returns the
// holders that have not released it.
type LockState = lockinfo.LockState

// A Holding is one live lease of a LockState, or what MinHold keeps closed after one
// (Released): its LeaseID, Token and Mode, its Holder, Since when it is held, and when
// it ends (ExpiresIn). Foreign reports whether its client is not holdfast.
type Holding = lockinfo.Holding

// A Place is one waiter's place in the queue of a LockState: the LeaseID and Mode that it
// waits for, its Holder, Since when it waits, and when the place is given up unless it is
// refreshed (ExpiresIn).
type Place = lockinfo.Place

// Never is the ExpiresIn of a Holding, or of a HeldError, that has no end.
const Never = lockinfo.Never

// Inspect reports what the store knows of a name: who holds it, who waits, and
// since and until when. It is a snapshot, which may be out of date when Inspect
// returns. An unused name is not an error: its LockState has no holders.
// ErrUnavailable means that the store did not answer within
// Options.RequestTimeout.
func (c *Client) Inspect(ctx context.Context, name string) (LockState, error) {
	if err := c.checkName(name); err != nil {
		return LockState{}, opError("inspect", name, err)
	}
	lock, err := c.inspect(ctx, name)
	return lock, opError("inspect", name, err)
}

// inspect is Inspect of a name that was checked, without the verb in its errors.
func (c *Client) inspect(ctx context.Context, name string) (LockState, error) {
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	lock, err := c.engine.Inspect(ctx, name)
	return lock, ask.Harmless(ctx, err)
}

// List yields the locks whose names begin with prefix and that are
// held, in no particular order; all of them if prefix is empty. A lock that is
// taken or released meanwhile may be among them or not. An error ends the
// sequence; it wraps ErrUnsupported if the engine cannot list. Only ctx
// bounds how long it takes.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[LockState, error] {
	return func(yield func(LockState, error) bool) {
		if err := c.list(ctx, prefix, yield); err != nil {
			yield(LockState{}, opError("list", prefix, ask.Harmless(ctx, err)))
		}
	}
}

// list yields locks. It returns nil when the loop has ended or there are no more locks.
func (c *Client) list(ctx context.Context, prefix string, yield func(LockState, error) bool) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.features.Lister == nil {
		return fmt.Errorf("listing is %w", ErrUnsupported)
	}
	for lock, err := range c.features.Lister.List(ctx, prefix) {
		if err != nil || !yield(lock, nil) {
			return err
		}
	}
	return nil
}
