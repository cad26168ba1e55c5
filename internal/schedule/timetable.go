// Package schedule is for things of which each needs attention at a time of its
// own: one timetable with one timer, however many there are, and requests that
// carry many of those that are due together. Nothing here has a goroutine or a
// timer for each item.
package schedule

import (
	"container/heap"
	"time"
)

// An Entry is an item's place in a Timetable. The zero Entry is in none.
type Entry struct {
	index int       // in the heap, counted from 1; 0 if the item is not there
	at    time.Time // when the item needs attention
}

// At returns when the item needs attention.
func (e *Entry) At() time.Time { return e.at }

// A Timetable orders items by the time at which they need attention, and has a
// timer for the first of them. A mutex of its owner guards it, and the entries of
// its items. Init comes first.
type Timetable[T any] struct {
	// LongestPause, if set, is the longest time between two ticks as long as
	// there are items.
	LongestPause time.Duration

	entry func(T) *Entry
	items []T // a heap
	timer *time.Timer
	fires time.Time // when timer does, or did: then tick is on its way; zero if it is not set
}

// Init makes an empty timetable. entry returns the entry of an item, and tick is
// called, on a goroutine of its own, when the first item needs attention; it
// should call Visit.
func (t *Timetable[T]) Init(entry func(T) *Entry, tick func()) {
	t.entry = entry
	t.timer = time.AfterFunc(time.Hour, tick)
	t.timer.Stop()
}

// Put adds item, or moves it, to the time at. A timer that fires before that is left
// alone: its tick sets the next. So it is not set for each of many items that come and
// go.
func (t *Timetable[T]) Put(item T, at time.Time) {
	if t.put(item, at) && (t.fires.IsZero() || at.Before(t.fires)) {
		t.arm()
	}
}

// put is Put without the timer. It reports whether item is first.
func (t *Timetable[T]) put(item T, at time.Time) bool {
	e := t.entry(item)
	e.at = at
	if e.index == 0 {
		heap.Push((*byTime[T])(t), item)
	} else {
		heap.Fix((*byTime[T])(t), e.index-1)
	}
	return e.index == 1
}

// Remove takes item out; it does nothing if it is not there. The timer is left
// to fire in vain: most items are moved or removed long before their time.
func (t *Timetable[T]) Remove(item T) {
	if e := t.entry(item); e.index > 0 {
		heap.Remove((*byTime[T])(t), e.index-1)
	}
}

// Visit calls visit with one item after the other, always with the first, until
// there is none or visit says that this one can wait, and sets the timer. next
// is when the item needs attention again; the zero time takes it out. visit must
// move the item it is given to a later time, and call no method of t.
func (t *Timetable[T]) Visit(visit func(item T) (next time.Time, wait bool)) {
	for len(t.items) > 0 {
		item := t.items[0]
		next, wait := visit(item)
		if wait {
			break
		}
		if next.IsZero() {
			t.Remove(item)
		} else {
			t.put(item, next)
		}
	}
	t.arm()
}

// arm sets the timer to the time of the first item.
func (t *Timetable[T]) arm() {
	if t.fires = (time.Time{}); len(t.items) == 0 {
		return
	}
	now := time.Now()
	pause := t.entry(t.items[0]).at.Sub(now)
	if t.LongestPause > 0 {
		pause = min(pause, t.LongestPause)
	}
	t.fires = now.Add(pause)
	t.timer.Reset(pause)
}

// Len returns the number of items.
func (t *Timetable[T]) Len() int { return len(t.items) }

// All returns the items, in no particular order.
func (t *Timetable[T]) All() []T { return append([]T(nil), t.items...) }

// byTime is a Timetable as package heap wants it.
type byTime[T any] Timetable[T]

func (t *byTime[T]) Len() int { return len(t.items) }

func (t *byTime[T]) Less(i, j int) bool {
	return t.entry(t.items[i]).at.Before(t.entry(t.items[j]).at)
}

func (t *byTime[T]) Swap(i, j int) {
	t.items[i], t.items[j] = t.items[j], t.items[i]
	t.entry(t.items[i]).index, t.entry(t.items[j]).index = i+1, j+1
}

func (t *byTime[T]) Push(x any) {
	item := x.(T)
	t.items = append(t.items, item)
	t.entry(item).index = len(t.items)
}

func (t *byTime[T]) Pop() any {
	last := len(t.items) - 1
	item := t.items[last]
	var none T
	t.items[last] = none
	t.items = t.items[:last]
	t.entry(item).index = 0
	return item
}
