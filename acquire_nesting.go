package holdfast

import (
	"reflect"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// checkNesting returns ErrDeadlock if the acquire could wait for a lease that
// its own context holds, which would be for ever:
//
//   - for an exclusive lock, or after one in the queue: the caller is in its own way;
//   - for another share or more permits than it has already, because an exclusive
//     or a large request that came in between waits for the first and is in
//     the way of the second.
//
// Without waiting the latter does no harm.
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

// sameStore reports whether two clients have one engine. An engine that cannot
// be compared, a struct with a map for example, is its own client's only.
func sameStore(a, b *Client) bool {
	return a == b || reflect.ValueOf(a.engine).Comparable() && reflect.ValueOf(b.engine).Comparable() && a.engine == b.engine
}
