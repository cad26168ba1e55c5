package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
)

// Options say what a Service does. Engine, Log and Drain must be set.
type Options struct {
	Engine driver.Engine
	Server server.Options // Logger is Log unless it is set
	Log    *slog.Logger
	Drain  time.Duration // how long requests may take to their end
}

// A Service answers on sockets. Use New to make one.
type Service struct {
	opts     Options
	locks    *server.Server
	http     *http.Server
	traffic  traffic
	draining atomic.Bool
	failed   chan error // why a socket is not served any more
	serving  sync.WaitGroup
}

// New returns a Service. It listens nowhere yet. The caller must call Shutdown.
func New(o Options) (*Service, error) {
	if o.Server.Logger == nil {
		o.Server.Logger = o.Log
	}
	locks, err := server.New(o.Engine, &o.Server)
	if err != nil {
		return nil, err
	}
	s := &Service{opts: o, locks: locks, failed: make(chan error, 1)}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// handler returns what answers: the server of locks, and at paths of their own what tells
// how the service is.
func (s *Service) handler() http.Handler {
	locks, ready := s.traffic.count(s.locks), s.readyz()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			healthz(w, r)
		case "/readyz":
			ready(w, r)
		default:
			locks.ServeHTTP(w, r)
		}
	})
}

// Serve begins to answer at l, which Shutdown closes.
func (s *Service) Serve(l net.Listener) {
	s.serving.Go(func() { // ends with Shutdown
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("%s: %w", l.Addr(), err):
			default: // one is enough
			}
		}
	})
}

// Failed tells why a socket is not served any more, if that was not Shutdown.
func (s *Service) Failed() <-chan error { return s.failed }

// Shutdown ends the service, and does not release a lock of anybody's. It refuses new
// work, tells streams to move, and waits until all is answered that was begun, for
// Options.Drain at most. Then it closes the sockets.
func (s *Service) Shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Drain)
	defer cancel()
	s.draining.Store(true)
	s.locks.Drain()
	begun := s.traffic.drain()
	select {
	case <-begun:
	case <-ctx.Done():
		s.opts.Log.Warn("requests are cut off: they took longer than --drain", "limit", s.opts.Drain)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = s.http.Shutdown(closing) // what it leaves, Close ends
	_ = s.http.Close()
	s.serving.Wait()
	if err := s.locks.Close(closing); err != nil {
		s.opts.Log.Warn("not everything could be cleaned up: it ends with its TTL", "error", err)
	}
}

// closeTimeout bounds what is done after the last request is answered.
const closeTimeout = 2 * time.Second
