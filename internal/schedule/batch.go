package schedule

import (
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
)

// Batches divides items into those that may go to the engine in one request:
// of one route, and at most MaxBatch. INVARIANT I9: what hangs delays no other.
// Without a router there is one route.
func Batches[T any](router driver.Router, items []T, name func(T) string) [][]T {
	if router == nil {
		return slices.Collect(slices.Chunk(items, driver.MaxBatch))
	}
	var routes []uint32 // in the order of their first items
	byRoute := map[uint32][]T{}
	for _, item := range items {
		r := router.Route(name(item))
		if byRoute[r] == nil {
			routes = append(routes, r)
		}
		byRoute[r] = append(byRoute[r], item)
	}
	var all [][]T
	for _, r := range routes {
		all = slices.AppendSeq(all, slices.Chunk(byRoute[r], driver.MaxBatch))
	}
	return all
}
