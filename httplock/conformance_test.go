package httplock_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A network has servers that are reached by their names, through pipes: so that time
// passes only when everybody waits.
type network map[string]*host

// The names of servers in a network.
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

// dial connects to a host.
func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	h := n[address]
	if h == nil {
		return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError(address)}
	}
	near, far := net.Pipe()
	select {
	case h.accepted <- far:
		return near, nil
	case <-h.done:
	case <-ctx.Done():
	}
	return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
}

// serve answers for a handler under a name, until the test ends.
func (n network) serve(tb testing.TB, name string, handler http.Handler) *host {
	h := &host{accepted: make(chan net.Conn), done: make(chan struct{})}
	h.http = &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			h.conns.Add(1)
		case http.StateClosed:
			h.conns.Done()
		}
	}}
	n[name] = h
	go func() { _ = h.http.Serve(h) }()
	tb.Cleanup(h.kill)
	return h
}

// kill ends the host and all its connections.
func (h *host) kill() {
	select {
	case <-h.done:
	default:
		close(h.done)
	}
	_ = h.http.Close()
	h.conns.Wait()
}

// open returns an engine for the hosts of some names, separated by commas.
func (n network) open(tb testing.TB, names string) *httplock.Engine {
	tb.Helper()
	e, err := httplock.OpenWith(tb.Context(), &httplock.Options{Dial: n.dial}, "http://"+names)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// served returns a network with one server, and an engine for it.
func served(tb testing.TB, engine driver.Engine) (network, *httplock.Engine) {
	tb.Helper()
	n := network{}
	s, err := server.New(engine, nil)
	if err != nil {
		tb.Fatal(err)
	}
	n.serve(tb, first, s)
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return n, n.open(tb, first)
}

// TestConformance runs the suite through a server, in virtual time.
func TestConformance(t *testing.T) {
	networks := map[driver.Engine]network{}
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			n, e := served(tb, memlock.New())
			networks[e] = n
			return e
		},
		Join:   func(tb testing.TB, e driver.Engine) driver.Engine { return networks[e].open(tb, first) },
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}
