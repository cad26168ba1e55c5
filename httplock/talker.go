package httplock

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// shortRequest is the longest body that a talker sends. With its header it is one write, which
// does not block even if the server does not read.
const shortRequest = 3 << 10

// longestHeader bounds the header of a response.
const longestHeader = 1 << 20

// A talker sends short requests to one server. The caller's goroutine writes and reads:
// http.Transport has two goroutines for each connection, and waking them costs 10 to 20 % of
// a request's processor time (docs/adr/0031). Those goroutines also notice when the server
// closes an idle connection. The talker asks the system instead, before each request. If the
// system cannot tell, and for long requests, the talker uses the transport.
type talker struct {
	transport *http.Transport
	dial      func(context.Context) (net.Conn, error)
	mute      atomic.Bool // the system cannot tell whether a connection is closed

	mu     sync.Mutex // guards the rest
	idle   []*talk    // the latest last
	closed bool
}

// A talk is one connection.
type talk struct {
	net.Conn
	tells func() (open bool) // nil: the system cannot tell
	limit io.LimitedReader
	read  *bufio.Reader
	write *bufio.Writer
	end   *time.Timer // closes the connection when it has been idle for long
}

// talker returns a talker for one server.
func (c *conns) talker(a address) *talker {
	t := &talker{transport: c.transport(a)}
	dial, port := t.transport.DialContext, "80"
	if t.transport.DialTLSContext != nil {
		dial, port = t.transport.DialTLSContext, "443"
	}
	address := net.JoinHostPort(a.url.Hostname(), cmp.Or(a.url.Port(), port))
	t.dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", address) }
	// Only the transport encodes a host that is not ASCII, and removes the zone of an address.
	t.mute.Store(strings.ContainsFunc(address, func(r rune) bool { return r >= 0x80 || r == '%' }))
	return t
}

// talks reports whether say may send a request with this body.
func (t *talker) talks(body []byte) bool { return len(body) <= shortRequest && !t.mute.Load() }

// A saying is one request.
type saying struct {
	at     *server
	method string
	client string
	left   string // milliseconds of the budget; empty: no header
	body   []byte
}

// say sends a request. If ctx ends before the body of the response is closed, the connection
// is closed.
func (t *talker) say(ctx context.Context, s saying) (*http.Response, error) {
	caller, end, ok := ask.Parts(ctx) // if ok, take sets the deadline on the connection
	if !ok {
		caller = ctx
	}
	c, err := t.take(ctx, end)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	stop := context.AfterFunc(caller, func() { _ = c.Close() })
	response, err := c.ask(s)
	if err != nil {
		stop()
		_ = c.Close()
		return nil, err
	}
	response.Body = &answerBody{ReadCloser: response.Body, ended: func(whole bool) {
		if stop() && whole && !response.Close && c.tells != nil {
			t.put(c)
			return
		}
		_ = c.Close()
	}}
	return response, nil
}

// ask writes a request, and reads the response up to its body.
func (c *talk) ask(s saying) (*http.Response, error) {
	c.limit.N = longestReply + longestHeader
	if err := c.send(s); err != nil {
		return nil, err
	}
	for {
		response, err := http.ReadResponse(c.read, post)
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil || response.StatusCode >= http.StatusOK:
			return response, err
		case response.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server speaks another protocol from here on")
		} // else it is informational: the response is still to come
	}
}

// post makes ReadResponse expect a body.
var post = &http.Request{Method: http.MethodPost}

// send writes a request. Flush returns the error of the connection.
func (c *talk) send(s saying) error {
	w := c.write
	_, _ = w.WriteString(s.at.before)
	_, _ = w.WriteString(s.method)
	_, _ = w.WriteString(s.at.after)
	_, _ = w.WriteString(form.Client + ": ")
	_, _ = w.WriteString(s.client)
	if s.left != "" {
		_, _ = w.WriteString("\r\n" + form.Timeout + ": ")
		_, _ = w.WriteString(s.left)
	}
	_, _ = w.WriteString("\r\nContent-Length: ")
	_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(len(s.body)), 10))
	_, _ = w.WriteString("\r\n\r\n")
	_, _ = w.Write(s.body)
	return w.Flush()
}

// An answerBody calls ended once, when it is closed. whole reports that it was read to its end.
type answerBody struct {
	io.ReadCloser
	whole bool
	ended func(whole bool)
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.whole = b.whole || err == io.EOF
	return n, err
}

// Close implements io.Closer. It does not read the rest of the body.
func (b *answerBody) Close() error {
	if b.ended != nil {
		b.ended(b.whole)
		b.ended = nil
	}
	return nil
}

// take returns a connection that the server has not closed, as far as the system knows. Its
// read deadline is end, if that is not zero.
func (t *talker) take(ctx context.Context, end time.Time) (*talk, error) {
	for c := t.last(); c != nil; c = t.last() {
		if c.end.Stop() && c.SetReadDeadline(end) == nil && c.read.Buffered() == 0 && c.tells() {
			return c, nil
		}
		_ = c.Close()
	}
	c, err := t.connect(ctx)
	if err == nil {
		_ = c.SetReadDeadline(end)
	}
	return c, err
}

// last removes and returns the idle connection with the latest request, or nil.
func (t *talker) last() (c *talk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle); n > 0 {
		c = t.idle[n-1]
		t.idle = slices.Delete(t.idle, n-1, n)
	}
	return c
}

func (t *talker) connect(ctx context.Context) (*talk, error) {
	raw, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &talk{Conn: raw, tells: openness(raw)}
	c.limit.R = raw
	c.read, c.write = bufio.NewReader(&c.limit), bufio.NewWriter(raw)
	if c.tells == nil {
		t.mute.Store(true)
	}
	return c, nil
}

// put keeps a connection for the next request, for idleLimit at most.
func (t *talker) put(c *talk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		_ = c.Close()
		return
	case c.end == nil:
		c.end = time.AfterFunc(idleLimit, func() { t.drop(c) })
	default:
		c.end.Reset(idleLimit)
	}
	t.idle = append(t.idle, c)
}

func (t *talker) drop(c *talk) {
	_ = c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = slices.DeleteFunc(t.idle, func(other *talk) bool { return other == c })
}

// close closes the idle connections, and makes put close the others.
func (t *talker) close() {
	t.transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, c := range t.idle {
		c.end.Stop()
		_ = c.Close()
	}
	t.idle = nil
}

// An opener is a connection that knows whether its other end is open, as in tests.
type opener interface{ Open() bool }

// openness returns a function that reports whether the other end of an idle connection is
// open and has sent nothing; nil if the system cannot tell.
func openness(c net.Conn) (tells func() bool) {
	for {
		switch of := c.(type) {
		case opener:
			return of.Open
		case *conn:
			c = of.Conn
		case interface{ NetConn() net.Conn }: // TLS
			c = of.NetConn()
		default:
			return systemTells(c)
		}
	}
}
