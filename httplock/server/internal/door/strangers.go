package door

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// strangersLogged is how many refusals of unknown callers are logged one by one in a second.
const strangersLogged = 5

// strangers bounds how much unknown callers can add to the log. It logs up to strangersLogged
// refusals in a second one by one, and then the number of the others.
type strangers struct {
	mu     sync.Mutex
	began  time.Time // of the second
	logged int
	more   int
}

// log reports whether the caller should log a refusal by itself. If not, log counts the
// refusal, and the count is logged after a second.
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

// sum logs how many refusals were counted.
func (s *strangers) sum(log *slog.Logger) {
	s.mu.Lock()
	more := s.more
	s.more = 0
	s.mu.Unlock()
	log.LogAttrs(context.Background(), slog.LevelInfo, "audit",
		slog.String("what", "refused"), slog.String("caller", ""), slog.Int("more", more),
		slog.String("detail", "so many more requests of callers that are not known, in a second"))
}
