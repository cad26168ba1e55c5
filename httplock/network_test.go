package httplock_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
)

// A network has servers that clients reach by name, through pipes. With pipes, virtual time passes
// only when all goroutines wait.
type network struct {
	mu    sync.Mutex // guards hosts
	hosts map[string]*host
}

// host returns the server with the given name, or nil.
func (n *network) host(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[name]
}

// Names of servers in a network.
const (
	first  = "127.0.0.1:7421"
	second = "127.0.0.1:7422"
)

// A host is one server of a network.
type host struct {
	accepted chan net.Conn
	done     chan struct{}
	http     *http.Server
	conns    sync.WaitGroup
	drain    func()
}

// Accept implements net.Listener.
func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.accepted:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *host) Close() error { return nil }

// Addr implements net.Listener.
func (h *host) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A pipe knows whether its other end is open.
type pipe struct {
	net.Conn
	until time.Time
}

// SetReadDeadline implements net.Conn.
func (p *pipe) SetReadDeadline(until time.Time) error {
	p.until = until
	return p.Conn.SetReadDeadline(until)
}

// Open reports whether the other end is open. It reads without waiting.
func (p *pipe) Open() bool {
	_ = p.Conn.SetReadDeadline(time.Unix(1, 0))
	defer func() { _ = p.Conn.SetReadDeadline(p.until) }()
	_, err := p.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	h := n.host(address)
	if h == nil {
		return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError(address)}
	}
	near, far := net.Pipe()
	select {
	case h.accepted <- far:
		return &pipe{Conn: near}, nil
	case <-h.done:
	case <-ctx.Done():
	}
	return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
}

// serve runs a server of handler under the given name until the test ends.
func (n *network) serve(tb testing.TB, name string, handler http.Handler) *host {
	h := &host{accepted: make(chan net.Conn), done: make(chan struct{})}
	h.http = &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			h.conns.Add(1)
		case http.StateClosed:
			h.conns.Done()
		}
	}}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]*host{}
	}
	n.hosts[name] = h
	go func() { _ = h.http.Serve(h) }()
	tb.Cleanup(h.kill)
	return h
}

// kill stops the host and closes all its connections.
func (h *host) kill() {
	select {
	case <-h.done:
	default:
		close(h.done)
	}
	_ = h.http.Close()
	h.conns.Wait()
}

// open returns an engine for the hosts with the given names, separated by commas.
func (n *network) open(tb testing.TB, names string) *httplock.Engine {
	tb.Helper()
	e, err := httplock.Open(tb.Context(), "http://"+names, &httplock.Options{Dial: n.dial})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// with adds a server with the given store.
func (n *network) with(tb testing.TB, name string, store driver.Engine, opts *server.Options, around ...func(http.Handler) http.Handler) *host {
	tb.Helper()
	s, err := server.New(store, opts)
	if err != nil {
		tb.Fatal(err)
	}
	handler := exchange.Recorded(tb, s)
	for _, f := range around {
		handler = f(handler)
	}
	h := n.serve(tb, name, handler)
	h.drain = s.Drain
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return h
}

// served returns a network with one server, and an engine for it.
func served(tb testing.TB, store driver.Engine, around ...func(http.Handler) http.Handler) (*network, *httplock.Engine) {
	tb.Helper()
	n := &network{}
	n.with(tb, first, store, nil, around...)
	return n, n.open(tb, first)
}
