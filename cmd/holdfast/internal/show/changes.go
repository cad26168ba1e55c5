package show

import (
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Kinds of changes from one round to the next.
const (
	Appeared = "appeared"
	Changed  = "changed"
	Gone     = "gone"
)

// A Change is the change of one lock.
type Change struct {
	What string
	Lock lockinfo.LockState // as it is now, or was
}

// Changes returns the differences between two rounds, in the order of names. Ages and renewals
// are not changes.
func Changes(before, after []lockinfo.LockState) (changes []Change) {
	known := map[string]lockinfo.LockState{}
	for _, lock := range before {
		known[lock.Name] = lock
	}
	for _, lock := range after {
		old, ok := known[lock.Name]
		switch {
		case !ok:
			changes = append(changes, Change{Appeared, lock})
		case !same(old, lock):
			changes = append(changes, Change{Changed, lock})
		}
		delete(known, lock.Name)
	}
	for _, lock := range known {
		changes = append(changes, Change{Gone, lock})
	}
	slices.SortFunc(changes, func(x, y Change) int { return strings.Compare(x.Lock.Name, y.Lock.Name) })
	return changes
}

// same reports whether a lock has the same holders, in the same modes, and as many waiting
// clients.
func same(x, y lockinfo.LockState) bool {
	return x.Mode == y.Mode && x.QueueLength == y.QueueLength &&
		slices.EqualFunc(x.Holders, y.Holders, func(g, h lockinfo.Holding) bool {
			return g.LeaseID == h.LeaseID && g.Token == h.Token && g.Mode == h.Mode && g.Released == h.Released
		})
}
