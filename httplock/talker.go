package httplock

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// shortRequest is the longest body that a talker sends by itself: with its header it is
// one write, which needs nobody to read meanwhile.
const shortRequest = 3 << 10

// longestHeader bounds what is read of an answer besides its body.
const longestHeader = 1 << 20

// A talker sends short requests to one server. Whoever asks writes and reads by himself:
// http.Transport has two goroutines for each connection, and to wake them costs as much as
// the rest of a request. What they would notice, that the server has closed a connection
// that nobody uses, the system is asked before each request: only where it does not tell,
// and for long requests, is the transport used.
type talker struct {
	transport *http.Transport
	dial      func(context.Context) (net.Conn, error)
	mute      atomic.Bool // connections do not tell whether the server has closed them

	mu     sync.Mutex // guards the rest
	idle   []*talk    // in the order in which they were used
	prune  *time.Timer
	closed bool
}

// A talk is one connection.
type talk struct {
	net.Conn
	tells func() (open bool) // nil: it does not
	limit io.LimitedReader
	read  *bufio.Reader
	write *bufio.Writer
	idle  time.Time // since when
}

// talker returns what sends requests to one server.
func (c *conns) talker(a address) *talker {
	t := &talker{transport: c.transport(a)}
	dial, address := t.transport.DialContext, hostPort(a.url)
	if t.transport.DialTLSContext != nil {
		dial = t.transport.DialTLSContext
	}
	t.dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", address) }
	t.mute.Store(!isPlain(address)) // which the transport translates
	return t
}

// hostPort returns the host of a URL with its port.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// isPlain reports whether a host stands in a header as it is: one with other letters, or
// with a zone, does not.
func isPlain(host string) bool {
	for i := range len(host) {
		if host[i] >= 0x80 || host[i] == '%' {
			return false
		}
	}
	return true
}

// talks reports whether a request with such a body is one for say.
func (t *talker) talks(body []byte) bool { return len(body) <= shortRequest && !t.mute.Load() }

// A saying is one request. What its server and method make of its header is written down
// once for all.
type saying struct {
	head   []byte // the lines of the header that are always the same
	client string
	left   string // of the budget; empty: it is not said
	body   []byte
}

// say sends a request. The end of ctx closes the connection until the body of the answer
// is closed.
func (t *talker) say(ctx context.Context, s saying) (*http.Response, error) {
	caller, end, ok := ask.Parts(ctx) // whose timer is that of the connection then
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

// ask writes a request, and reads the answer up to its body.
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
		} // else it is about an answer that is still to come
	}
}

// post says that the answer to it has a body.
var post = &http.Request{Method: http.MethodPost}

// send writes a request. An error of the connection is that of Flush.
func (c *talk) send(s saying) error {
	w := c.write
	_, _ = w.Write(s.head)
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

// An answerBody tells once that it is not read any more, and whether it is whole.
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

// Close implements io.Closer. The rest of the body is not waited for.
func (b *answerBody) Close() error {
	if b.ended != nil {
		b.ended(b.whole)
		b.ended = nil
	}
	return nil
}

// take returns a connection that the server has not closed as far as the system knows. It
// is for reading until end, if that is not zero.
func (t *talker) take(ctx context.Context, end time.Time) (*talk, error) {
	for {
		c := t.last()
		if c == nil {
			c, err := t.connect(ctx)
			if err == nil {
				_ = c.SetReadDeadline(end)
			}
			return c, err
		}
		if c.SetReadDeadline(end) == nil && c.read.Buffered() == 0 && c.tells() {
			return c, nil
		}
		_ = c.Close()
	}
}

// last returns the connection that was used last.
func (t *talker) last() *talk {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	if n == 0 {
		return nil
	}
	c := t.idle[n-1]
	t.idle[n-1] = nil
	t.idle = t.idle[:n-1]
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

// put keeps a connection for the next request.
func (t *talker) put(c *talk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = c.Close()
		return
	}
	c.idle = time.Now()
	t.idle = append(t.idle, c)
	if t.prune == nil {
		t.prune = time.AfterFunc(idleLimit, t.pruned)
	}
}

// pruned closes the connections that nobody has used for idleLimit.
func (t *talker) pruned() {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := 0
	for old < len(t.idle) && time.Since(t.idle[old].idle) >= idleLimit {
		_ = t.idle[old].Close()
		old++
	}
	t.idle = append(t.idle[:0:0], t.idle[old:]...)
	t.prune = nil
	if len(t.idle) > 0 && !t.closed {
		t.prune = time.AfterFunc(idleLimit-time.Since(t.idle[0].idle), t.pruned)
	}
}

// close closes the connections that nobody uses, and those that come back later.
func (t *talker) close() {
	t.transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.prune != nil {
		t.prune.Stop()
	}
	for _, c := range t.idle {
		_ = c.Close()
	}
	t.idle = nil
}

// An opener is a connection that knows by itself whether its other end is open.
type opener interface{ Open() bool }

// openness returns what tells whether the other end of a connection is open, and has said
// nothing that nobody has asked for; nil if nothing does.
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
