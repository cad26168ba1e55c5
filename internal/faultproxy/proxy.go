// Package faultproxy puts a faulty network between a Redis client and its
// server, for tests. It is a TCP proxy that understands enough of RESP to match requests and
// replies. It delays, holds, loses or cuts them as the test decides. NewPostgres is the same
// for PostgreSQL.
//
//	p := faultproxy.New(t, serverAddr)
//	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
//		if r.Command() == "EVALSHA" && r.Has("orders/42") {
//			return faultproxy.Action{Reply: faultproxy.Swallow}
//		}
//		return faultproxy.Action{}
//	})
//
// An Action is a fault of a single request. Latency, Jitter, Reorder, Slice, LoseMessages,
// Cut, BlackHole and Drop are faults of the whole network, and BlackHoleConns is one of all
// present connections. Random numbers depend only on a seed and
// the number of the connection, so that a run can be repeated.
//
// # Limits
//
// Messages of subscriptions, and the confirmations of SUBSCRIBE and similar commands, match no
// request. So the server must not refuse those commands. MONITOR and CLIENT REPLY are not
// supported.
package faultproxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy listens on a free port of 127.0.0.1. All methods are safe for
// concurrent use.
type Proxy struct {
	target   string
	wire     func(io.Reader) protocol
	listener net.Listener
	requests atomic.Int64
	latency  atomic.Int64 // in nanoseconds
	silent   atomic.Bool  // messages of subscriptions are lost
	hook     atomic.Pointer[func(Request) Action]
	jitter   atomic.Pointer[spread]
	reorder  atomic.Pointer[spread]
	slice    atomic.Pointer[slicing]
	all      sync.WaitGroup // the accept loop and the connections

	mu      sync.Mutex // guards the rest
	conns   map[*conn]struct{}
	dialled int           // how many connections there were so far
	refuse  bool          // Cut was called
	passing chan struct{} // closed unless the network is a black hole
}

// New starts a proxy in front of the server at target, "host:port". It ends with the test, with
// its connections and goroutines.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	return listen(t, target, func(r io.Reader) protocol { return newWire(r) })
}

// A protocol reads requests from a client, or replies from a server. raw has all their bytes. A
// request without words has no reply.
type protocol interface {
	request() (words []string, raw []byte, err error)
	reply() (reply, error)
}

func listen(t testing.TB, target string, wire func(io.Reader) protocol) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("faultproxy: cannot listen: %v", err)
	}
	p := &Proxy{
		target:   target,
		wire:     wire,
		listener: listener,
		conns:    map[*conn]struct{}{},
		passing:  make(chan struct{}),
	}
	close(p.passing)
	p.all.Go(p.accept) // ends when the listener is closed
	t.Cleanup(p.close)
	return p
}

// Addr returns the address to connect to, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// OnRequest makes decide choose the Action of each request from now on. With nil the proxy passes
// all requests. decide is called in the order of the requests of one connection, and concurrently
// for several connections. The connection waits while it runs.
func (p *Proxy) OnRequest(decide func(Request) Action) {
	set(&p.hook, decide != nil, decide)
}

// Requests returns how many requests clients have sent so far, the
// handshakes of their libraries included. Each is one round trip, unless the
// client pipelines.
func (p *Proxy) Requests() int { return int(p.requests.Load()) }

// Latency delays by d everything that the proxy reads from now on, in each direction, messages of
// subscriptions included.
func (p *Proxy) Latency(d time.Duration) { p.latency.Store(int64(d)) }

// LoseMessages sets whether the messages of subscriptions are lost from now on. Confirmations of
// SUBSCRIBE and similar commands are not lost.
func (p *Proxy) LoseMessages(lose bool) { p.silent.Store(lose) }

// Drop breaks every connection, on both sides; what was on the wire is lost.
// Clients may connect again at once.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

// Cut breaks every connection as Drop does, and every new one until Heal is called.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	p.dropLocked()
}

// BlackHole stops every stream in both directions until Heal is called, without an error. Data
// that is sent meanwhile arrives after Heal, even from clients that have given up by then.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passing:
		p.passing = make(chan struct{})
	default: // it is a black hole already
	}
}

// Heal ends Cut and BlackHole.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
}

func (p *Proxy) dropLocked() {
	for c := range p.conns {
		c.kill()
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.Cut()
	p.all.Wait()
}

// accept serves clients until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client.(*net.TCPConn)) }) // ends with the connection
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	c, ok := p.register(client, server.(*net.TCPConn))
	if !ok {
		reset(client)
		server.Close()
		return
	}
	c.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// register returns a new connection, unless the network is cut.
func (p *Proxy) register(client, server *net.TCPConn) (*conn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse {
		return nil, false
	}
	p.dialled++
	c := newConn(p, p.dialled, client, server)
	p.conns[c] = struct{}{}
	return c, true
}

// decide counts a request and lets the test decide about it.
func (p *Proxy) decide(r Request) Action {
	p.requests.Add(1)
	if hook := p.hook.Load(); hook != nil {
		return (*hook)(r)
	}
	return Action{}
}

// open returns a channel that is closed when the network passes data.
func (p *Proxy) open() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passing
}
