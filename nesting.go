package holdfast

import "github.com/holdfast-locks/holdfast/driver"

// A heldKey is the key of the innermost *Lease of a context.
type heldKey struct{}

// checkNesting returns ErrDeadlock if the acquire could wait for a lease that
// its own context holds, which would be for ever:
//
//   - for an exclusive lock, or behind one: whoever asks is in its own way;
//   - for a shared lock while sharing it, because an exclusive request that
//     came in between waits for the first and is in the way of the second;
//   - for more permits than the limit leaves beside its own.
//
// Without waiting the last two do no harm.
func (a *acquisition) checkNesting(wait bool) error {
	permits := a.req.Permits
	for l := a.outer; l != nil; l = l.outer {
		if l.name != a.req.Name || l.client.engine != a.client.engine || !l.Valid() {
			continue
		}
		held := l.Mode()
		switch {
		case held == driver.Exclusive || a.req.Mode == driver.Exclusive:
			return ErrDeadlock
		case held == driver.Shared && wait:
			return ErrDeadlock
		case held == driver.Semaphore:
			if permits += l.opts.Permits; permits > a.req.Limit && wait {
				return ErrDeadlock
			}
		}
	}
	return nil
}
