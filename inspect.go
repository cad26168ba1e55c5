package holdfast

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A Lock is what a store knows of one name: its Name, Mode and Limit, its Holders, each a
// Holding, its Queue, each a Place, of which the first 256 are described at least, the
// QueueLength, and the LastToken that was granted. Live returns the holders that have not
// released it.
type Lock = driver.Lock

// A Holding is one live lease of a Lock, or what MinHold keeps closed after one
// (Released): its LeaseID, Token and Permits, its Holder, Since when it is held, and when
// it ends (ExpiresIn). Foreign reports whether it is that of a client that is not holdfast.
type Holding = driver.Holding

// A Place is one waiter's in the queue of a Lock: the LeaseID, Mode and Permits that it
// waits for, its Holder, Since when it waits, and when the place is given up unless it is
// refreshed (ExpiresIn).
type Place = driver.Waiting

// Never is the ExpiresIn of a Holding, or of a HeldError, that has no end.
const Never = driver.Never

// Inspect reports what the store knows of a name: who holds it, who waits, and
// since and until when. It is a snapshot: what it says may be over when it
// returns. A name that nobody uses is not an error: its Lock has no holders.
// ErrUnavailable says that the store did not answer within
// Options.RequestTimeout.
func (c *Client) Inspect(ctx context.Context, name string) (Lock, error) {
	if err := c.checkName(name); err != nil {
		return Lock{}, opError("inspect", name, err)
	}
	lock, err := c.inspect(ctx, name)
	return lock, opError("inspect", name, err)
}

// inspect is Inspect of a name that was checked, without the verb in its errors.
func (c *Client) inspect(ctx context.Context, name string) (Lock, error) {
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	lock, err := c.engine.Inspect(ctx, name)
	return lock, ask.Harmless(ctx, err)
}

// List yields the locks whose names begin with prefix and that somebody
// holds, in no particular order; all of them if prefix is empty. A lock that is
// taken or given back meanwhile may be among them or not. An error ends the
// sequence; it wraps ErrUnsupported if the engine cannot list. Nothing but ctx
// bounds how long it takes.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Lock, error] {
	return func(yield func(Lock, error) bool) {
		if err := c.checkList(); err != nil {
			yield(Lock{}, opError("list", prefix, err))
			return
		}
		for lock, err := range c.features.Lister.List(ctx, prefix) {
			if err != nil {
				yield(Lock{}, opError("list", prefix, err))
				return
			}
			if !yield(lock, nil) {
				return
			}
		}
	}
}

func (c *Client) checkList() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.features.Lister == nil {
		return fmt.Errorf("listing is %w", ErrUnsupported)
	}
	return nil
}
