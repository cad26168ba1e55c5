package storedoor

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// A shared is a request to the store whose reply all callers share. Only one is under way at
// a time, and every is the shortest time between two.
type shared[T any] struct {
	every time.Duration
	send  func(ctx context.Context) (T, error)
	house *door.House
	what  string // for the log

	mu    sync.Mutex
	sent  time.Time     // when the last one was sent; zero: never
	under chan struct{} // closed when the reply comes; nil if no request is under way
	last  answer[T]
}

// An answer is the latest result of a request.
type answer[T any] struct {
	found T         // the reply to the last request that was answered
	at    time.Time // when that reply came; zero: never
	err   error     // of the last request
	known bool      // a request has ended
	since time.Time // since when all requests were answered, or none
}

// get returns the latest reply. If may is set and another request is due, it sends one. It
// waits for a request under way until ctx ends. If old is set, it waits only if no request has
// ended yet.
func (s *shared[T]) get(ctx context.Context, may, old bool) answer[T] {
	s.mu.Lock()
	if may && s.under == nil && (s.sent.IsZero() || time.Since(s.sent) >= s.every) {
		s.sent, s.under = time.Now(), make(chan struct{})
		s.house.Go(s.what, s.run)
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
		last.err, last.known = nil, false // an old reply does not show that the store answers now
		return last
	}
}

// run sends the request. It stores a result even after a panic of the engine.
func (s *shared[T]) run(ctx context.Context) {
	err := errFault
	var found T
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := time.Now(); !s.last.known || (s.last.err == nil) != (err == nil) {
			s.last.since = now
		}
		if s.last.err, s.last.known = err, true; err == nil {
			s.last.found, s.last.at = found, time.Now()
		}
		close(s.under)
		s.under = nil
	}()
	found, err = s.send(ctx)
}
