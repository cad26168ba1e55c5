package holdfast

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A Lock is what a store knows of one name: see Client.Inspect and Client.List.
type Lock = driver.Lock

// A Holding is one live lease of a Lock.
type Holding = driver.Holding

// A Place is one waiter's in the queue of a Lock.
type Place = driver.Waiting

// Never is the ExpiresIn of a Holding, or of a HeldError, that has no end.
const Never = driver.Never

// Inspect reports what the store knows of a name: who holds it, who waits, and
// since and until when. It is a snapshot: what it says may be over when it
// returns. A name that nobody uses is not an error: its Lock has no holders.
// ErrUnavailable says that the store did not answer within
// Options.RequestTimeout.
func (c *Client) Inspect(ctx context.Context, name string) (Lock, error) {
	if err := driver.CheckName(name); err != nil {
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
	lister := c.features.Lister
	return func(yield func(Lock, error) bool) {
		if lister == nil {
			yield(Lock{}, opError("list", prefix, fmt.Errorf("listing is %w", ErrUnsupported)))
			return
		}
		for lock, err := range lister.List(ctx, prefix) {
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
