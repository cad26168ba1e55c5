// Package schedule is for things of which each needs attention at a time of its
// own: one timetable with one timer, however many there are, and requests that
// carry many of those that are due together. Nothing here has a goroutine or a
// timer for each item.
package schedule

import "time"

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
	began time.Time
	slots []slot[T] // a heap of which each node has up to fanOut children
	timer *time.Timer
	fires time.Time // when timer does, or did: then tick is on its way; zero if it is not set
}

// A slot is one element of the heap: the times are in one block of memory. With very many
// items whose times were in the items, reading them was a third of the cost of a renewal,
// and package container/heap moves two items where one would do.
type slot[T any] struct {
	at   time.Duration // since the table began
	item T
}

const fanOut = 4

// Init makes an empty timetable. entry returns the entry of an item, and tick is
// called, on a goroutine of its own, when the first item needs attention; it
// should call Visit.
func (t *Timetable[T]) Init(entry func(T) *Entry, tick func()) {
	t.entry, t.began = entry, time.Now()
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
		t.slots = append(t.slots, slot[T]{})
		e.index = len(t.slots)
	}
	t.settle(e.index-1, slot[T]{at.Sub(t.began), item})
	return e.index == 1
}

// Remove takes item out; it does nothing if it is not there. The timer is left
// to fire in vain: most items are moved or removed long before their time.
func (t *Timetable[T]) Remove(item T) {
	e := t.entry(item)
	if e.index == 0 {
		return
	}
	i, last := e.index-1, len(t.slots)-1
	moved := t.slots[last]
	t.slots[last], t.slots, e.index = slot[T]{}, t.slots[:last], 0
	if i < last {
		t.settle(i, moved)
	}
}

// Visit calls visit with one item after the other, always with the first, until
// there is none or visit reports that this one can wait, and sets the timer. next
// is when the item needs attention again; the zero time removes it. visit must
// move its item to a later time, and call no method of t.
func (t *Timetable[T]) Visit(visit func(item T) (next time.Time, wait bool)) {
	for len(t.slots) > 0 {
		item := t.slots[0].item
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
	if t.fires = (time.Time{}); len(t.slots) == 0 {
		return
	}
	now := time.Now()
	pause := t.slots[0].at - now.Sub(t.began)
	if t.LongestPause > 0 {
		pause = min(pause, t.LongestPause)
	}
	t.fires = now.Add(pause)
	t.timer.Reset(pause)
}

// Len returns the number of items.
func (t *Timetable[T]) Len() int { return len(t.slots) }

// All returns the items, in no particular order.
func (t *Timetable[T]) All() []T {
	all := make([]T, len(t.slots))
	for i, s := range t.slots {
		all[i] = s.item
	}
	return all
}

// settle puts s where the heap has a gap at i, or above or below it, so that no slot
// is earlier than its parent.
func (t *Timetable[T]) settle(i int, s slot[T]) {
	for i > 0 && s.at < t.slots[(i-1)/fanOut].at {
		t.set(i, t.slots[(i-1)/fanOut])
		i = (i - 1) / fanOut
	}
	for {
		least := t.leastChild(i)
		if least == 0 || s.at <= t.slots[least].at {
			break
		}
		t.set(i, t.slots[least])
		i = least
	}
	t.set(i, s)
}

// leastChild returns the earliest child of i, or 0 if there is none.
func (t *Timetable[T]) leastChild(i int) (least int) {
	for c := fanOut*i + 1; c <= fanOut*(i+1) && c < len(t.slots); c++ {
		if least == 0 || t.slots[c].at < t.slots[least].at {
			least = c
		}
	}
	return least
}

func (t *Timetable[T]) set(i int, s slot[T]) {
	t.slots[i] = s
	t.entry(s.item).index = i + 1
}
