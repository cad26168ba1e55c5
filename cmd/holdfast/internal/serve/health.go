package serve

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// readyTimeout is how long the store may take to answer a check.
	readyTimeout = time.Second

	// readyFor is how long the result is cached.
	readyFor = 500 * time.Millisecond

	// readyName is the lock that the check reads. No caller may use the name.
	readyName = "holdfast@server/ready"
)

// healthz succeeds while the process runs.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n")) // the client may be gone
}

// readyz succeeds if this server can take requests.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	p := wire.Problem{Status: http.StatusServiceUnavailable, Code: "store-unavailable", Detail: "the store does not answer"}
	err := s.ready(r.Context())
	switch {
	case err == nil:
		healthz(w, r)
		return
	case errors.Is(err, errDraining):
		p.Code, p.Detail = "draining", err.Error()
	default: // the error may have details that are not public
		s.opts.Log.Warn("not ready: the store does not answer", "error", err)
	}
	problem.Write(w, p)
}

var errDraining = errors.New("this server is about to stop")

// ready returns an error if clients should not send requests here: the server drains, or the
// store does not answer.
func (s *Service) ready(ctx context.Context) error {
	if s.draining.Load() {
		return errDraining
	}
	return s.store.look(ctx, s.opts.Engine)
}

// A probe checks the store for all clients of readyz, and caches the result.
type probe struct {
	mu   sync.Mutex // held while the store is checked
	at   time.Time
	last error
}

func (p *probe) look(ctx context.Context, store driver.Engine) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < readyFor {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	_, p.last = store.Inspect(ctx, readyName)
	if p.last != nil && ctx.Err() != nil {
		p.last = errors.New("no answer within " + readyTimeout.String())
	}
	p.at = time.Now()
	return p.last
}
