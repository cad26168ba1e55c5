// Package schedule is for things of which each needs attention at a time of its
// own: one timetable with one timer, however many there are, and requests that
// carry many of those that are due together. Nothing here has a goroutine or a
// timer for each item.
package schedule

import "time"

// An Entry is an item's place in a Timetable, where it has no place yet. Its owner sets Item.
type Entry[T any] struct {
	Item T

	at         time.Duration // when the item needs attention, since the table began
	row        int           // counted from 1; 0 if the item is not there
	prev, next *Entry[T]     // in the row; nil at its ends
}

// A Timetable orders items by the time at which they need attention, and has a
// timer for the first of them. A mutex of its owner guards it, and the entries of
// its items. Init comes first.
type Timetable[T any] struct {
	// LongestPause, if set, is the longest time between two ticks as long as
	// there are items.
	LongestPause time.Duration

	began time.Time
	rows  []row[T]
	count int // of items
	timer *time.Timer
	fires time.Time // when timer does, or did: then tick is on its way; zero if it is not set
}

// A row is a list of entries in the order of their times. Most items need attention after one of
// few pauses: each pause has a row, and the next item belongs at its end. An item that belongs
// to neither end of a row gets a new row: n times at random make about the square root of n
// rows. from and to are here because all rows are compared, and few entries are in a cache.
type row[T any] struct {
	first, last *Entry[T]
	from, to    time.Duration // never, if the row is empty
}

const never = 1 << 62

// Init makes an empty timetable. tick is called, on a goroutine of its own, when the first
// item needs attention; it should call Visit.
func (t *Timetable[T]) Init(tick func()) {
	t.began = time.Now()
	t.timer = time.AfterFunc(time.Hour, tick)
	t.timer.Stop()
}

// At returns when the item of e needs attention.
func (t *Timetable[T]) At(e *Entry[T]) time.Time { return t.began.Add(e.at) }

// Put adds the item of e, or moves it, to the time at. A timer that fires before that is
// left alone: its tick sets the next. So it is not set for each of many items that come and
// go.
func (t *Timetable[T]) Put(e *Entry[T], at time.Time) {
	t.put(e, at)
	if t.fires.IsZero() || at.Before(t.fires) {
		t.arm()
	}
}

// put is Put without the timer.
func (t *Timetable[T]) put(e *Entry[T], at time.Time) {
	t.Remove(e)
	e.at = at.Sub(t.began)
	i := t.rowFor(e.at)
	if i == len(t.rows) {
		t.rows = append(t.rows, row[T]{from: never, to: never})
	}
	t.rows[i].add(e)
	e.row = i + 1
	t.count++
}

// rowFor returns the row with the closest end at which an entry of that time belongs, or the
// number of rows if there is none.
func (t *Timetable[T]) rowFor(at time.Duration) int {
	best, least := len(t.rows), time.Duration(never)
	for i := range t.rows {
		r := &t.rows[i]
		gap := at - r.to
		if at <= r.from {
			gap = r.from - at
		}
		if gap >= 0 && gap < least {
			best, least = i, gap
		}
	}
	return best
}

// Remove takes the item of e out; it does nothing if it is not there. The timer is left
// to fire in vain: most items are moved or removed long before their time.
func (t *Timetable[T]) Remove(e *Entry[T]) {
	if e.row == 0 {
		return
	}
	t.rows[e.row-1].remove(e)
	e.row = 0
	t.count--
	for n := len(t.rows); n > 0 && t.rows[n-1].first == nil; n-- {
		t.rows = t.rows[:n-1]
	}
}

// Visit calls visit with one item after the other, always with the first, until
// there is none or visit reports that this one can wait, and sets the timer. next
// is when the item needs attention again; the zero time removes it. visit must
// move its item to a later time, and call no method of t but At.
func (t *Timetable[T]) Visit(visit func(item T) (next time.Time, wait bool)) {
	for e := t.first(); e != nil; e = t.first() {
		next, wait := visit(e.Item)
		if wait {
			break
		}
		if next.IsZero() {
			t.Remove(e)
		} else {
			t.put(e, next)
		}
	}
	t.arm()
}

// first returns the first entry, or nil.
func (t *Timetable[T]) first() (first *Entry[T]) {
	at := time.Duration(never)
	for i := range t.rows {
		if r := &t.rows[i]; r.from < at {
			first, at = r.first, r.from
		}
	}
	return first
}

// arm sets the timer to the time of the first item.
func (t *Timetable[T]) arm() {
	first := t.first()
	if t.fires = (time.Time{}); first == nil {
		return
	}
	now := time.Now()
	pause := t.At(first).Sub(now)
	if t.LongestPause > 0 {
		pause = min(pause, t.LongestPause)
	}
	t.fires = now.Add(pause)
	t.timer.Reset(pause)
}

// Len returns the number of items.
func (t *Timetable[T]) Len() int { return t.count }

// All returns the items, in no particular order.
func (t *Timetable[T]) All() []T {
	all := make([]T, 0, t.count)
	for _, r := range t.rows {
		for e := r.first; e != nil; e = e.next {
			all = append(all, e.Item)
		}
	}
	return all
}

// add puts e, which is in no row, at the end where it belongs.
func (r *row[T]) add(e *Entry[T]) {
	switch {
	case r.first == nil:
		r.first, r.last = e, e
	case e.at >= r.to:
		e.prev, r.last.next = r.last, e
		r.last = e
	default:
		e.next, r.first.prev = r.first, e
		r.first = e
	}
	r.from, r.to = r.first.at, r.last.at
}

// remove takes e out.
func (r *row[T]) remove(e *Entry[T]) {
	prev, next := e.prev, e.next
	e.prev, e.next = nil, nil
	if prev == nil {
		r.first = next
	} else {
		prev.next = next
	}
	if next == nil {
		r.last = prev
	} else {
		next.prev = prev
	}
	if r.from, r.to = never, never; r.first != nil {
		r.from, r.to = r.first.at, r.last.at
	}
}
