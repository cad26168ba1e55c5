package tell

import "github.com/holdfast-locks/holdfast/observe"

// A list is a queue of events that does not move them, so that some can be delivered while
// others arrive. While there are few it uses the same memory again and again.
type list struct {
	head, tail *block // nil if there never was an event
	begin      int    // of head, the first event that is there
	end        int    // of tail, after the last one
	spare      *block // to be used next; may be nil
}

type block struct {
	events [16]observe.Event
	next   *block
}

// add returns where to put the next event.
func (l *list) add() *observe.Event {
	if l.tail == nil || l.end == len(l.tail.events) {
		b := l.spare
		if l.spare = nil; b == nil {
			b = &block{}
		}
		if l.tail == nil {
			l.head = b
		} else {
			l.tail.next = b
		}
		l.tail, l.end = b, 0
	}
	l.end++
	return &l.tail.events[l.end-1]
}

// first returns events from the front of the list, none only if it is empty. They stay
// where they are until drop.
func (l *list) first() []observe.Event {
	switch l.head {
	case nil:
		return nil
	case l.tail:
		return l.head.events[l.begin:l.end]
	}
	return l.head.events[l.begin:]
}

// drop takes n events away that first has returned.
func (l *list) drop(n int) {
	if n == 0 {
		return
	}
	clear(l.head.events[l.begin : l.begin+n]) // what they refer to is garbage now
	l.begin += n
	switch {
	case l.head == l.tail && l.begin == l.end:
		l.begin, l.end = 0, 0
	case l.begin == len(l.head.events):
		b := l.head
		l.head, l.begin = b.next, 0
		b.next, l.spare = nil, b
	}
}
