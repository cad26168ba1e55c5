package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

// Break ends every lease of a name, whoever has it, for people who know that
// its holder is dead or wrong. The lock goes to the first of the queue in the
// same step. It returns the holdings that it ended, also together with an
// error about another; a lock that nobody holds has none.
//
// A holder that lives is told with its next renewal that the lease is lost: in
// a third of its TTL at worst, while the next holder works already. Only a
// resource that checks tokens is safe then. A lock that a foreign client holds
// cannot be broken: the error wraps ErrKindMismatch.
func (c *Client) Break(ctx context.Context, name string) (broken []driver.Holding, err error) {
	lock, err := c.Inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, h := range lock.Holders {
		switch err := c.breakOne(ctx, name, h); {
		case err == nil:
			broken = append(broken, h)
		case !errors.Is(err, ErrLost): // it ended by itself otherwise
			return broken, opError("break", name, err)
		}
	}
	return broken, nil
}

func (c *Client) breakOne(ctx context.Context, name string, h driver.Holding) error {
	switch {
	case h.LeaseID == "":
		return fmt.Errorf("%w: a client that is not holdfast has it: end it there", ErrKindMismatch)
	case h.Released:
		return ErrLost // nobody has it; it is closed for a while
	}
	return c.releaseOnce(ctx, driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID})
}
