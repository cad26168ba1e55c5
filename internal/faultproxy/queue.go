package faultproxy

import "sync"

// A queue passes values from one goroutine to another, in order. It has no bound: push never
// blocks, just as a slow network does not block a sender.
type queue[T any] struct {
	mu     sync.Mutex // guards the rest
	items  []T
	closed bool
	more   chan struct{} // has room for one signal, that items or closed has changed
}

func newQueue[T any]() *queue[T] { return &queue[T]{more: make(chan struct{}, 1)} }

func (q *queue[T]) push(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.signal()
}

// close ends the queue: no more pushes.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.more <- struct{}{}:
	default: // a signal is waiting already
	}
}

// tryPop returns the oldest item, if there is one.
func (q *queue[T]) tryPop() (item T, ok bool) {
	item, ok, _ = q.take()
	return item, ok
}

// pop waits for an item. It returns false once the queue is closed and empty,
// or when stop is closed.
func (q *queue[T]) pop(stop <-chan struct{}) (item T, ok bool) {
	for {
		item, ok, closed := q.take()
		if ok || closed {
			return item, ok
		}
		select {
		case <-q.more:
		case <-stop:
			return item, false
		}
	}
}

func (q *queue[T]) take() (item T, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false, q.closed
	}
	item, q.items = q.items[0], q.items[1:]
	return item, true, false
}
