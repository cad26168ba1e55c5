package tell

import "github.com/holdfast-locks/holdfast/observe"

// A list is a queue of events. It does not move them in memory, so some can be delivered while
// others arrive. It reuses its memory while there are few events.
type list struct {
	head, tail *block // nil if there never was an event
	begin      int    // the index of the first event, in head
	end        int    // the index after the last event, in tail
	spare      *block // a block to reuse, or nil
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

// first returns some events from the front of the list, or none if the list is empty. They stay
// in the list until drop is called.
func (l *list) first() []observe.Event {
	switch l.head {
	case nil:
		return nil
	case l.tail:
		return l.head.events[l.begin:l.end]
	}
	return l.head.events[l.begin:]
}

// drop removes the first n events that first has returned.
func (l *list) drop(n int) {
	if n == 0 {
		return
	}
	clear(l.head.events[l.begin : l.begin+n]) // for the garbage collector
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
