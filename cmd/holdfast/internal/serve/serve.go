package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// Options configure a Service. Engine, Log and Drain must be set.
type Options struct {
	Engine      driver.Engine
	Server      server.Options // Logger and Observer are the Service's
	Certificate *Certificate   // is shown at addresses, and not at sockets; nil: no TLS
	Log         *slog.Logger
	AccessLog   bool          // a line for each request
	Drain       time.Duration // how long requests may take to their end
	Version     string
	Metrics     bool   // /metrics is at listeners of its own, and nowhere else
	Files       []File // are read again by Reload
}

// A File can be read again.
type File interface{ Reload() error }

// A Service answers on sockets. Use New to make one.
type Service struct {
	opts     Options
	locks    *server.Server
	events   *events
	started  time.Time
	requests *requests
	traffic  traffic
	store    probe
	draining atomic.Bool

	main      *http.Server // of the locks
	telemetry *http.Server // of /metrics, if it has its own listener; or nil
	failed    chan error   // why a socket is not served any more
	all       sync.WaitGroup
}

// New returns a Service. It listens nowhere yet. The caller must call Shutdown.
func New(o Options) (*Service, error) {
	s := &Service{opts: o, events: newEvents(), started: time.Now(), failed: make(chan error, 1)}
	s.opts.Server.Logger, s.opts.Server.Observer = o.Log, s.events.observe
	var err error
	if s.locks, err = server.New(o.Engine, &s.opts.Server); err != nil {
		return nil, err
	}
	var log *slog.Logger
	if o.AccessLog {
		log = o.Log
	}
	s.requests = newRequests(log)
	s.main = s.newHTTP(s.handler())
	server.Configure(s.main)
	// A stream that holds a lock costs a third less by HTTP/2, so that is enabled without
	// TLS as well, for clients with prior knowledge; nothing is upgraded.
	s.main.Protocols = new(http.Protocols)
	s.main.Protocols.SetHTTP1(true)
	s.main.Protocols.SetHTTP2(true)
	s.main.Protocols.SetUnencryptedHTTP2(true)
	if o.Certificate != nil {
		s.main.TLSConfig = o.Certificate.Config()
	}
	return s, nil
}

func (s *Service) newHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           timed(h),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelWarn),
	}
}

const (
	// bodyTime is how long a client may take to send a body.
	bodyTime = 10 * time.Second

	// patience is how long a client may take to read an answer that the server of locks does not
	// give.
	patience = 30 * time.Second
)

// timed returns h with a deadline for bodies that h does not read: net/http reads the rest of one
// before the response ends.
func timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // a recorder of a test has none
		}
		h.ServeHTTP(w, r)
	})
}

// handler returns what answers: the server of locks, and at paths of their own what tells
// how the service is.
func (s *Service) handler() http.Handler {
	locks, paths := s.requests.around(dashboard.Page(s.traffic.count(s.locks))), s.paths()
	if s.opts.Metrics {
		delete(paths, "/metrics")
	} else {
		// Clients of a loopback address need the right too: a proxy on this host has such an
		// address.
		paths["/metrics"] = s.locks.Guard(caller.Read, paths["/metrics"]).ServeHTTP
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := paths[r.URL.Path]; h != nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // a recorder of a test has none
			getOnly(h)(w, r)
			return
		}
		locks.ServeHTTP(w, r)
	})
}

// API returns what answers for the locks, for what the program itself asks.
func (s *Service) API() http.Handler { return s.locks }

// paths has what tells how the service is.
func (s *Service) paths() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"/healthz": healthz, "/readyz": s.readyz, "/metrics": s.metrics}
}

// Serve begins to answer at l, which Shutdown closes.
func (s *Service) Serve(l net.Listener) {
	if s.opts.Certificate != nil && l.Addr().Network() != "unix" {
		s.serve(l, func() error { return s.main.ServeTLS(l, "", "") })
		return
	}
	s.serve(l, func() error { return s.main.Serve(l) })
}

// ServeMetrics serves /metrics, /healthz and /readyz on l, unauthenticated, but not to web
// pages. If only this host can reach l, it serves profiles too.
func (s *Service) ServeMetrics(l net.Listener) {
	mux := http.NewServeMux()
	for path, h := range s.paths() {
		mux.HandleFunc("GET "+path, h)
	}
	if !IsPublic(l.Addr()) {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	s.telemetry = s.newHTTP(s.locks.FromHere(mux))
	s.telemetry.WriteTimeout = patience // which profiles add to their time
	s.serve(l, func() error { return s.telemetry.Serve(l) })
}

func (s *Service) serve(l net.Listener, serve func() error) {
	s.all.Go(func() { // ends with Shutdown
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("%s: %w", l.Addr(), err):
			default: // one is enough
			}
		}
	})
}

// Failed tells why a socket is not served any more, if that was not Shutdown.
func (s *Service) Failed() <-chan error { return s.failed }

// Reload reads the files again. It logs those that cannot be used, and keeps their old
// contents.
func (s *Service) Reload() {
	for _, f := range s.opts.Files {
		if err := f.Reload(); err != nil {
			s.opts.Log.Error("not reloaded: the previous content stays in use", "error", err)
		}
	}
}

// Shutdown ends the service, and does not release a lock of anybody's. It refuses new
// work, tells streams to move, and waits until all is answered that was begun, for
// Options.Drain at most. Then it closes the sockets.
func (s *Service) Shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Drain)
	defer cancel()
	s.draining.Store(true)
	s.locks.Drain()
	select {
	case <-s.traffic.drain():
	case <-ctx.Done():
		s.opts.Log.Warn("requests are cut off: they took longer than --drain", "limit", s.opts.Drain)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = s.main.Shutdown(closing) // what it leaves, Close ends
	_ = s.main.Close()           // the sockets are closed even after an error
	if s.telemetry != nil {
		_ = s.telemetry.Close()
	}
	s.all.Wait()
	if err := s.locks.Close(closing); err != nil {
		s.opts.Log.Warn("some requests could not be cleaned up: what they left ends with its TTL", "error", err)
	}
}

// closeTimeout bounds what is done after the last request is answered.
const closeTimeout = 2 * time.Second
