// Package schedule is for items that each need attention at some time, such as leases that need
// a renewal. A Timetable has one timer for any number of items, and Batches puts items that are
// due together into few requests. No item has a goroutine or a timer of its own.
package schedule

import "time"

// An Entry is an item's entry for a Timetable. The zero Entry is in no Timetable. Its owner sets
// Item.
type Entry[T any] struct {
	Item T

	at         time.Duration // when the item needs attention, since the table began
	row        int           // counted from 1; 0 if the entry is in no row
	prev, next *Entry[T]     // the neighbors in the row; nil at its ends
}

// A Timetable orders items by the time at which they need attention, and has a timer for the
// first of them. The owner must guard it, and the entries of its items, by a mutex. Init must be
// called first.
type Timetable[T any] struct {
	// LongestPause, if set, is the longest time between two ticks as long as
	// there are items.
	LongestPause time.Duration

	began time.Time
	rows  []row[T]
	count int // how many items there are
	timer *time.Timer
	fires time.Time // when timer fires, or has fired; zero if it is not set
}

// A row is a list of entries in the order of their times. Most items need attention after one of
// a few pauses. Each of these pauses has a row, and a new item goes to its end. An item that fits
// at neither end of any row gets a new row, so n items at random times make about the square root
// of n rows. from and to are copied here, because all rows are compared often, and few entries
// are in the CPU's cache.
type row[T any] struct {
	first, last *Entry[T]
	from, to    time.Duration // the times of first and last; never if the row is empty
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

// Put adds the item of e, or moves it, to the time at. It leaves alone a timer that fires
// earlier, because the tick sets the timer again. So items that come and go cost no timer calls.
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

// rowFor returns the index of the row to whose end an entry with that time can be added; of
// several, the one whose end is closest. It returns the number of rows if there is none.
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

// Remove removes the item of e, if it is there. It leaves the timer alone, which may then fire in
// vain: most items are moved or removed long before their time.
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

// Visit calls visit with the first item again and again, until no item is left or visit returns
// wait. It then sets the timer. next is when the item needs attention again, and must be later
// than before; the zero time removes the item. visit must not call methods of t other than At.
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

// add adds e, which is in no row, at the end that fits its time.
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

// remove removes e.
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
