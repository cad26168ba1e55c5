package serve

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/problem"
)

const (
	// readyTimeout is how long the store may take to answer, to be there.
	readyTimeout = time.Second

	// readyFor is how long an answer counts: whoever asks more often is told the same.
	readyFor = 500 * time.Millisecond

	// readyName is asked about. No caller may use it, so nobody ever has it.
	readyName = "holdfast@server/ready"
)

// healthz says that the process lives.
func healthz(w http.ResponseWriter, _ *http.Request) { fine(w) }

func fine(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n")) // a caller that is gone needs no answer
}

// readyz says whether it is of use to send requests here: the store answers, and the
// server does not drain.
func (s *Service) readyz() http.HandlerFunc {
	store := probe{ask: func(ctx context.Context) error {
		_, err := s.opts.Engine.Inspect(ctx, readyName)
		return err
	}}
	return func(w http.ResponseWriter, r *http.Request) {
		code, detail := "draining", "this server is about to stop"
		if !s.draining.Load() {
			err := store.look(r.Context())
			if err == nil {
				fine(w)
				return
			}
			s.opts.Log.Warn("not ready: the store does not answer", "error", err)
			code, detail = "unavailable", "the store does not answer" // the error may say more than everybody is to know
		}
		problem.Write(w, wire.Problem{Status: http.StatusServiceUnavailable, Code: code, Detail: detail})
	}
}

// A probe asks one question for all who want to know, again when the answer is old.
type probe struct {
	ask func(context.Context) error

	mu   sync.Mutex // held while the store is asked
	at   time.Time
	last error
}

func (p *probe) look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < readyFor && !p.at.IsZero() {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	p.last = p.ask(ctx)
	if errors.Is(p.last, context.DeadlineExceeded) || ctx.Err() != nil && p.last != nil {
		p.last = errors.New("no answer within " + readyTimeout.String())
	}
	p.at = time.Now()
	return p.last
}
