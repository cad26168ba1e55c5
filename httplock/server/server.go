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
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lookdoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/oncedoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/storedoor"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/streamdoor"
)

// Options configure New. Nil options are the defaults; a zero field is default.
type Options struct {
	// Callers identifies the caller of a request. Unknown callers are refused with 401.
	// Default: every client may do everything, which is for loopback addresses only.
	Callers caller.Source

	// Hosts are further names of the server, without ports; localhost is always one. If
	// Callers is nil, a request to another name is refused: a web page could have sent it,
	// under a name that resolves to this server. Addresses need not be listed.
	Hosts []string

	// Store describes the store for people: its URL without credentials. Default: the name
	// of the engine.
	Store string

	// Secret is the key of lease IDs, the same on all servers of a store: 32 bytes or more.
	// Default: one that the servers draw and keep in the store.
	Secret []byte

	// Notice is a text that the dashboard shows to every user, such as that this is a
	// demonstration. Default: none.
	Notice string

	// Limits are for each caller, at this server.
	Limits Limits

	// Observer receives the events of this server; see holdfast.Options.
	Observer holdfast.Observer

	// Logger receives refusals, breaks and faults. No record has a lease ID, a secret or a
	// payload. Default: slog.Default.
	Logger *slog.Logger
}

// Limits is how much one caller may have at one server. More is refused with 429, and the
// other callers do not notice. A zero field is default.
type Limits struct {
	Waiters int // requests that wait for a lock; default 10,000
	Streams int // responses that go on: held locks, events, news; default 5,000
	Leases  int // leases requested through this server that have not ended; default 100,000
	Kept    int // bytes of results and one-time tokens given to this server that have not ended, each with 512 more; default 64 MiB
}

// A Server answers requests for the locks of one engine. It is an http.Handler. Use
// New to make one.
type Server struct {
	callers  caller.Source
	hosts    []string
	notice   string
	warned   sync.Once // of sign-ins over plain HTTP
	house    *door.House
	entrance http.Handler // checks requests, and passes them to mux
	mux      *http.ServeMux
	drain    func()
	stop     func()                  // ends the streams and watches of engines
	losses   func() eventdoor.Totals // nil without history
}

// New returns a server for the locks of engine. It sends nothing. The caller must Close
// it, and the engine after it.
func New(engine driver.Engine, opts *Options) (*Server, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	client, err := holdfast.New(engine, &holdfast.Options{Observer: o.Observer, Logger: o.Logger, SharedEngine: true})
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
	if s.callers != nil {
		s.house.Identify = s.known
	}
	s.stop = driverdoor.Routes(s.mux, s.house)
	leases, stream, leave := streamdoor.Open(s.house)
	leasedoor.Routes(s.mux, leases, stream)
	oncedoor.Routes(s.mux, leases)
	lookdoor.Routes(s.mux, s.house)
	deafen, losses := eventdoor.Routes(s.mux, s.house)
	s.losses = losses
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

// PathName returns the name in r, which a mux with the server's own patterns has matched:
// the value of wildcard in its path or, if that is "~", name= of the query. It is for
// handlers in front of a server, so that both use the same name.
func PathName(r *http.Request, wildcard string) (string, error) { return door.PathName(r, wildcard) }

// A Load is what all callers have of one server at one moment.
type Load struct {
	Waiters int // requests that wait for a lock
	Streams int // responses that go on: held locks, events, news
	Leases  int // leases requested through this server that have not ended
}

// Losses are the leases in the store, of all callers and programs, that have ended before
// their holders released them, since the server began.
type Losses struct {
	Expired, Lost, Broken int

	// Missed is how often the server was cut off from events: each time it may have missed
	// losses.
	Missed int
}

// Losses returns what the server has counted. It reports false if the store has no history.
func (s *Server) Losses() (Losses, bool) {
	if s.losses == nil {
		return Losses{}, false
	}
	return Losses(s.losses()), true
}

// Load returns what all callers have of this server now.
func (s *Server) Load() (l Load) {
	l.Waiters, l.Streams, l.Leases = s.house.Limits.Load()
	return l
}

// Drain refuses new work from now on, and tells streams to move to another server. Their
// leases do not change.
func (s *Server) Drain() { s.drain() }

// Close ends the server's background work, as holdfast.Client.Close does for a client. It does
// not close the engine.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	s.stop()
	return s.house.Close(ctx)
}
