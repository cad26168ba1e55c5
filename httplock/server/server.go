package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/driverdoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/eventdoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/leasedoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/storedoor"
)

// Options configure New. Nil is default; a zero field is default.
type Options struct {
	// Callers finds out who sends a request. Whoever is not known is refused with 401.
	// Default: everybody may do everything, which is for loopback addresses only.
	Callers caller.Source

	// Hosts are names under which the server is reached, without ports, besides localhost.
	// Where Callers is nil, a request to another name is refused: a web page could have
	// sent it, by a name that it makes lead to this server. Addresses need not be named.
	Hosts []string

	// Store is what people are told that the store is: its URL without credentials.
	// Default: which engine it is.
	Store string

	// Secret is what lease IDs are made of, the same on all servers of a store: 32 bytes
	// or more. Default: one that the servers draw and keep in the store.
	Secret []byte

	// Notice is what the dashboard says to everybody, such as that this is a demonstration.
	// Default: nothing.
	Notice string

	// Limits are for each caller, at this server.
	Limits Limits

	// Observer is told of what this server does to locks; see holdfast.Options.
	Observer holdfast.Observer

	// Logger is where refusals, breaks, and what is wrong are written. No line has a
	// lease ID, a secret or a payload. Default: slog.Default.
	Logger *slog.Logger
}

// Limits is how much one caller may have at one server. Whoever wants more is answered 429,
// and the other callers do not notice. A zero field is default.
type Limits struct {
	Waiters int // requests that wait for a lock; default 10,000
	Streams int // responses that go on: held locks, events, news; default 5,000
	Leases  int // leases asked for through this server that have not ended; default 100,000
}

// A Server answers requests for the locks of one engine. It is an http.Handler. Use
// New to make one.
type Server struct {
	callers  caller.Source
	hosts    []string
	notice   string
	attempts attempts  // to sign in
	warned   sync.Once // of signing in over plain HTTP
	house    *door.House
	entrance http.Handler // to mux, for those that are let in
	mux      *http.ServeMux
	drain    func()
	stop     func() // ends the streams and watches of engines
}

// New returns a server for the locks of engine. It sends nothing. The caller must Close
// it, and the engine after it.
func New(engine driver.Engine, opts *Options) (*Server, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	client, err := holdfast.New(engine, &holdfast.Options{Observer: o.Observer, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	log := cmp.Or(o.Logger, slog.Default())
	secret, err := newSecret(client, o.Secret, log)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	draining := make(chan struct{})
	s := &Server{
		callers: o.Callers, hosts: o.Hosts, notice: o.Notice, mux: http.NewServeMux(),
		house: &door.House{
			Engine: engine, Features: client.Features(), Client: client, Draining: draining,
			Limits: limit.New(limit.Max(o.Limits)),
			Log:    log, Observer: o.Observer,
			Secret: secret.get,
		},
	}
	s.stop = driverdoor.Routes(s.mux, s.house)
	leave := leasedoor.Routes(s.mux, s.house)
	deafen := eventdoor.Routes(s.mux, s.house)
	storedoor.Routes(s.mux, s.house, o.Store)
	s.drain = sync.OnceFunc(func() {
		close(draining)
		leave()
		deafen()
	})
	s.sessionRoutes()
	s.mux.Handle("GET /openapi.json", s.house.Handle(describe))
	s.mux.Handle("/", s.house.Handle(s.nothing))
	s.entrance = s.house.Handle(s.admit)
	return s, nil
}

// ConnContext is for the field of that name of the http.Server that runs s; Configure sets
// it. Without it, s cannot tell a client that is cut off from one that listens: its lock is
// kept until the system gives the connection up, which may take a quarter of an hour. Nor
// can a caller.File tell the users of a unix socket apart.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return caller.ConnContext(peer.With(ctx, conn), conn)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.entrance.ServeHTTP(w, r) }

// PathName returns the name that r, which a mux with the server's own patterns has matched, is
// about: what stands for wildcard in its path, or, with "~" there, name= of the query. It is
// for handlers that stand in front of a server, so that both mean the same name.
func PathName(r *http.Request, wildcard string) (string, error) { return door.PathName(r, wildcard) }

// A Load is what all callers have of one server at one moment.
type Load struct {
	Waiters int // requests that wait for a lock
	Streams int // responses that go on: held locks, events, news
	Leases  int // leases asked for through this server that have not ended
}

// Load returns what the callers have of this server now.
func (s *Server) Load() Load { return Load(s.house.Limits.Load()) }

// Drain refuses new work from now on, and tells streams to move to another server. Their
// leases are left as they are.
func (s *Server) Drain() { s.drain() }

// Close ends what the server does in the background, as holdfast.Client.Close does. It does not
// close the engine.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	s.stop()
	return s.house.Close(ctx)
}
