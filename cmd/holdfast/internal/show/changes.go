package show

import (
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// Changes returns the differences between two rounds, in the order of names. Ages and renewals
// are not changes.
func Changes(before, after []lockinfo.LockState) (changes []wire.Change) {
	known := map[string]lockinfo.LockState{}
	for _, lock := range before {
		known[lock.Name] = lock
	}
	for _, lock := range after {
		what := "changed"
		if old, ok := known[lock.Name]; !ok {
			what = "appeared"
		} else if same(old, lock) {
			what = ""
		}
		if what != "" {
			changes = append(changes, wire.Change{Change: what, Name: lock.Name, Lock: new(wire.LockOf(lock))})
		}
		delete(known, lock.Name)
	}
	for name := range known {
		changes = append(changes, wire.Change{Change: "gone", Name: name})
	}
	slices.SortFunc(changes, func(x, y wire.Change) int { return strings.Compare(x.Name, y.Name) })
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
