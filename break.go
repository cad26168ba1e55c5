package holdfast

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// BreakOptions choose the lease that Break ends, and the reason. Nil is default; a zero
// field is default.
type BreakOptions struct {
	// Token is the token of the lease to end, as Inspect shows it. If that lease has ended,
	// Break does nothing. Default: all leases that Break finds.
	Token uint64

	// Older ends every lease whose token is at most Token. With the greatest
	// token that Inspect shows, Break ends all leases that it shows, and none
	// that was granted later.
	Older bool

	// Closed opens a name that MinHold keeps closed, and leaves live leases
	// alone. Without it the name stays closed.
	Closed bool

	// Reason says why, to the holder and others: UTF-8 without control
	// characters, MaxReason bytes at most.
	Reason string

	// Author says who broke the lease: MaxAuthor bytes at most. Default: the
	// client's Options.Holder.
	Author string
}

// The maximum lengths of a break's author and reason, in bytes.
const (
	MaxAuthor = driver.MaxAuthor
	MaxReason = driver.MaxReason
)

// A Broken is what the store remembers of one lease that was broken: its LeaseID, Token,
// Mode and Holder, and the break: its ID, Author, Reason, and how long Ago it was.
type Broken = lockinfo.Broken

// Break takes a lock away, for people who know that its holder is dead or
// wrong. It ends leases of any mode and any holder, or with Closed what
// MinHold keeps closed. The lock goes to the first of the queue in the same
// step. It returns the leases that it ended; none if the lock is free, or has
// no lease with that token. A lease that is granted after Break was called is never
// ended by it.
//
// The holder's context ends as soon as the message about it arrives, with a
// cause that is ErrLost and ErrBroken, a *BrokenError with author and reason.
// If the message is lost the next renewal finds out. The next holder may be at
// work by then: only a resource that checks tokens is safe.
//
// ErrOutcomeUnknown means that leases may have been ended or not: see Records.Breaks. A
// second call without a Token may meet the next holder. A lock that a foreign
// client holds cannot be broken: the error wraps ErrKindMismatch. It wraps
// ErrUnsupported if the engine cannot break locks.
func (c *Client) Break(ctx context.Context, name string, opts *BreakOptions) ([]Broken, error) {
	broken, err := c.breakLock(ctx, name, *cmp.Or(opts, &BreakOptions{}))
	return broken, opError("break", name, err)
}

func (c *Client) breakLock(ctx context.Context, name string, o BreakOptions) ([]Broken, error) {
	if err := c.checkName(name); err != nil {
		return nil, err
	}
	req := driver.BreakRequest{
		ID: lockinfo.NewLeaseID(), Name: name, Token: o.Token, Older: o.Older, Closed: o.Closed,
		Author: cmp.Or(o.Author, c.opts.Holder.String()), Reason: o.Reason,
	}
	if err := driver.CheckBreak(req.Author, req.Reason); err != nil {
		return nil, err
	}
	if o.Token > driver.MaxToken {
		return nil, fmt.Errorf("%w token %d: no lease can have it", ErrInvalid, o.Token)
	}
	if c.features.Breaker == nil {
		return nil, fmt.Errorf("breaking locks is %w", ErrUnsupported)
	}
	if o.Token == 0 {
		// The client resolves the token, and not the store, so that a late or repeated
		// request cannot end a later lease. INVARIANT I6.
		var err error
		if req.Token, err = c.latestToken(ctx, name, o.Closed); req.Token == 0 || err != nil {
			return nil, err
		}
		req.Older = true
	}
	var broken []Broken
	f := ask.Until(ctx, c.opts.RequestTimeout, func(ctx context.Context) (err error) {
		broken, err = c.features.Breaker.Break(ctx, req)
		return err
	})
	return broken, f.Effective()
}

// latestToken returns the greatest token of the live leases of a name, or with closed of the
// released leases that MinHold keeps closed. It returns 0 if there are none.
func (c *Client) latestToken(ctx context.Context, name string, closed bool) (uint64, error) {
	lock, err := c.inspect(ctx, name)
	if err != nil {
		return 0, err
	}
	latest := uint64(0)
	for _, h := range lock.Holders {
		if h.Foreign() {
			return 0, fmt.Errorf("%w: a client that is not holdfast has it: end it there", ErrKindMismatch)
		}
		if h.Released == closed {
			latest = max(latest, h.Token)
		}
	}
	return latest, nil
}
