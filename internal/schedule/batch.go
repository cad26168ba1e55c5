package schedule

import "github.com/holdfast-locks/holdfast/driver"

// Batches divides items into batches, each for one request to the engine. A batch has items of
// one route, and a limited number of them. INVARIANT I9: a route that hangs does not delay the
// others. Without a router there is one route.
type Batches[T any] struct {
	router driver.Router
	most   int
	name   func(T) string

	all  [][]T
	open map[uint32]int // by route: the index in all of the batch that has room, if there is one
}

// NewBatches returns empty Batches. Each batch has at most most items. name returns the name of
// an item.
func NewBatches[T any](router driver.Router, most int, name func(T) string) *Batches[T] {
	return &Batches[T]{router: router, most: most, name: name, open: map[uint32]int{}}
}

// Add puts an item into a batch.
func (b *Batches[T]) Add(item T) {
	var route uint32
	if b.router != nil {
		route = b.router.Route(b.name(item))
	}
	i, open := b.open[route]
	if !open {
		i = len(b.all)
		b.all, b.open[route] = append(b.all, nil), i
	}
	b.all[i] = append(b.all[i], item)
	if len(b.all[i]) == b.most {
		delete(b.open, route)
	}
}

// Room reports whether a batch has room for more items.
func (b *Batches[T]) Room() bool { return len(b.open) > 0 }

// Full returns how many batches have no room.
func (b *Batches[T]) Full() int { return len(b.all) - len(b.open) }

// All returns the batches.
func (b *Batches[T]) All() [][]T { return b.all }
