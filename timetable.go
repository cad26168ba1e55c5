package holdfast

import (
	"container/heap"
	"time"
)

// A slot is an item's place in a timetable.
type slot struct {
	index int       // counted from 1; 0 if the item is not there
	at    time.Time // when the item needs attention
}

// A timetable orders items by the time at which they need attention, for a
// scheduler with one timer. The scheduler's mutex guards it and the slots of
// its items.
type timetable[T interface{ timeslot() *slot }] struct{ items []T }

// put adds item, or moves it, to the time at. It reports whether it is first.
func (t *timetable[T]) put(item T, at time.Time) bool {
	s := item.timeslot()
	s.at = at
	if s.index == 0 {
		heap.Push(t, item)
	} else {
		heap.Fix(t, s.index-1)
	}
	return s.index == 1
}

// remove takes item out; it does nothing if it is not there.
func (t *timetable[T]) remove(item T) {
	if s := item.timeslot(); s.index > 0 {
		heap.Remove(t, s.index-1)
	}
}

// Len, Less, Swap, Push and Pop are for package heap only.

func (t *timetable[T]) Len() int { return len(t.items) }

func (t *timetable[T]) Less(i, j int) bool {
	return t.items[i].timeslot().at.Before(t.items[j].timeslot().at)
}

func (t *timetable[T]) Swap(i, j int) {
	t.items[i], t.items[j] = t.items[j], t.items[i]
	t.items[i].timeslot().index, t.items[j].timeslot().index = i+1, j+1
}

func (t *timetable[T]) Push(x any) {
	item := x.(T)
	t.items = append(t.items, item)
	item.timeslot().index = len(t.items)
}

func (t *timetable[T]) Pop() any {
	last := len(t.items) - 1
	item := t.items[last]
	var none T
	t.items[last] = none
	t.items = t.items[:last]
	item.timeslot().index = 0
	return item
}
