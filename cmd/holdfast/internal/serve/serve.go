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
	Certificate *Certificate   // for TCP listeners only; nil: no TLS
	Log         *slog.Logger
	AccessLog   bool          // a line for each request
	Drain       time.Duration // how long Shutdown waits for requests
	Version     string
	Metrics     bool   // serve /metrics on its own listeners only
	Files       []File // Reload reads them again
}

// A File can be read again.
type File interface{ Reload() error }

// A Service serves the lock API on its listeners. Use New to make one.
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
	failed    chan error   // why a listener is no longer served
	all       sync.WaitGroup
}

// New returns a Service that does not listen yet. The caller must call Shutdown.
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
	// A stream that holds a lock costs a third less over HTTP/2, so HTTP/2 is enabled without TLS
	// as well, for clients with prior knowledge. HTTP/1 connections are not upgraded.
	s.main.Protocols = new(http.Protocols)
	s.main.Protocols.SetHTTP1(true)
	s.main.Protocols.SetHTTP2(true)
	s.main.Protocols.SetUnencryptedHTTP2(true)
	if o.Certificate != nil {
		s.main.TLSConfig = o.Certificate.Config()
	}
	return s, nil
}

// newHTTP returns a server that cuts off slow clients: those that take more than 10 s to send a
// body, or more than 30 s to read a response.
func (s *Service) newHTTP(h http.Handler) *http.Server {
	all := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 { // even if h does not read the body: net/http does before the response ends
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second)) // a server's request has one
			}
			h.ServeHTTP(w, r)
		}),
		ErrorLog: slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelWarn),
	}
	server.Configure(all)
	all.WriteTimeout = 30 * time.Second // a profile adds its duration to it
	return all
}

// untimed returns h, the lock server, without the time limit for responses: waits and streams take
// longer. The lock server limits the writes of its responses itself.
func untimed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder of a test has none
		h.ServeHTTP(w, r)
	})
}

// handler returns the handler of the service: the lock server, and the handlers of paths.
func (s *Service) handler() http.Handler {
	locks, paths := s.requests.around(dashboard.Page(untimed(s.traffic.count(s.locks)))), s.paths()
	if s.opts.Metrics {
		delete(paths, "/metrics")
	} else {
		// Clients at a loopback address need the right too, because a proxy on this host has such
		// an address.
		paths["/metrics"] = s.locks.Guard(caller.Read, paths["/metrics"]).ServeHTTP
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := paths[r.URL.Path]; h != nil {
			getOnly(h)(w, r)
			return
		}
		locks.ServeHTTP(w, r)
	})
}

// API returns the handler of the lock server, for requests of this program itself.
func (s *Service) API() http.Handler { return s.locks }

// paths returns the handlers of the health checks and of the metrics.
func (s *Service) paths() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"/healthz": healthz, "/readyz": s.readyz, "/metrics": s.metrics}
}

// Serve starts to serve l. Shutdown closes l.
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

// Failed delivers why a listener is no longer served, unless Shutdown was called.
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

// Shutdown ends the service, but releases no lock. It refuses new work, tells streams to move,
// and waits for at most Options.Drain until the requests in progress are answered. Then it closes
// the sockets.
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
	_ = s.main.Shutdown(closing) // Close ends the connections that it leaves
	_ = s.main.Close()           // the sockets are closed even after an error
	if s.telemetry != nil {
		_ = s.telemetry.Close()
	}
	s.all.Wait()
	if err := s.locks.Close(closing); err != nil {
		s.opts.Log.Warn("some requests could not be cleaned up: what they left ends with its TTL", "error", err)
	}
}

// closeTimeout bounds the work after the last response.
const closeTimeout = 2 * time.Second
