package holdfast

import (
	"reflect"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// checkNesting returns ErrDeadlock if the acquire could wait for ever for a lease that its own
// context holds:
//
//   - The lease, or the request, is exclusive: the caller waits for itself.
//   - The caller holds a share or permits, and requests another share or more permits. An
//     exclusive or a large request may be queued in between: it waits for the caller's lease,
//     and the caller's request waits behind it. A try does not wait, so it may go ahead.
func (a *acquisition) checkNesting() error {
	for l := a.outer; l != nil; l = l.outer {
		if l.name != a.req.Name || !sameStore(l.client, a.client) || !l.Valid() {
			continue
		}
		if a.waits || l.Mode() == lockinfo.Exclusive || a.req.Mode == lockinfo.Exclusive {
			return ErrDeadlock
		}
	}
	return nil
}

// sameStore reports whether two clients share one engine. An engine that cannot be compared,
// such as a struct with a map, counts as not shared.
func sameStore(a, b *Client) bool {
	return a == b || reflect.ValueOf(a.engine).Comparable() && reflect.ValueOf(b.engine).Comparable() && a.engine == b.engine
}
