package storedoor

import (
	"context"
	"sync"
	"time"
)

// A shared is a question to the store whose answer all have who want it. However many they
// are, it is asked once at a time, and not again before every is over.
type shared[T any] struct {
	every time.Duration
	send  func(ctx context.Context) (T, error)
	spawn func(func(ctx context.Context)) // runs it on a goroutine that the server waits for

	mu    sync.Mutex
	asked time.Time     // when it was asked last; zero: never
	under chan struct{} // closed when it is answered; nil if it is not being asked
	last  answer[T]
}

// An answer is what came of a question.
type answer[T any] struct {
	found T         // by the last one that was answered
	at    time.Time // when that was; zero: never
	err   error     // of the last one
	known bool      // one is over
}

// get returns what is known. If it is time, and may says so, the store is asked anew. For an
// answer to that get waits until ctx ends; if old is set, only for the first.
func (s *shared[T]) get(ctx context.Context, may, old bool) answer[T] {
	s.mu.Lock()
	if may && s.under == nil && (s.asked.IsZero() || time.Since(s.asked) >= s.every) {
		s.asked, s.under = time.Now(), make(chan struct{})
		s.spawn(s.ask)
	}
	under, last := s.under, s.last
	s.mu.Unlock()
	if under == nil || old && last.known {
		return last
	}
	select {
	case <-under:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.last
	case <-ctx.Done():
		last.err, last.known = nil, false // what was known before says nothing of now
		return last
	}
}

// ask asks the store. It ends in a panic of the engine as well.
func (s *shared[T]) ask(ctx context.Context) {
	err := errFault
	var found T
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last.err, s.last.known = err, true; err == nil {
			s.last.found, s.last.at = found, time.Now()
		}
		close(s.under)
		s.under = nil
	}()
	found, err = s.send(ctx)
}
