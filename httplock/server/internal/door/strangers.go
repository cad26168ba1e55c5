package door

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// strangersLogged is how many refusals of callers that are not known are logged one by one
// in a second.
const strangersLogged = 5

// strangers bound what callers that are not known write into the log: each refusal up to
// strangersLogged in a second, and then how many more there were.
type strangers struct {
	mu     sync.Mutex
	began  time.Time // of the second
	logged int
	more   int
}

// log reports whether one refusal of now is to be logged by itself. If not it is counted,
// and the count is logged after the second.
func (s *strangers) log(log *slog.Logger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.more == 0 && now.Sub(s.began) >= time.Second {
		s.began, s.logged = now, 0
	}
	if s.more == 0 && s.logged < strangersLogged {
		s.logged++
		return true
	}
	if s.more++; s.more == 1 {
		time.AfterFunc(time.Second, func() { s.sum(log) })
	}
	return false
}

// sum logs how many were counted.
func (s *strangers) sum(log *slog.Logger) {
	s.mu.Lock()
	more := s.more
	s.more = 0
	s.mu.Unlock()
	log.LogAttrs(context.Background(), slog.LevelInfo, "audit",
		slog.String("what", "refused"), slog.String("caller", ""), slog.Int("more", more),
		slog.String("detail", "so many more requests of callers that are not known, in a second"))
}
