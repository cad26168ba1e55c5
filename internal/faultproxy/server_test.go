package faultproxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds what a test waits for on a loaded machine.
const patience = 10 * time.Second

// An echo is a server that speaks enough RESP for these tests, and records the commands that it has
// carried out:
//
//	ECHO x       answers x as a bulk string
//	NESTED x     answers an attribute and a map of everything RESP 3 has
//	PUSH x       sends a push message, then answers x
//	SUBSCRIBE x  answers with a message only, in the form of RESP 2
type echo struct {
	listener net.Listener
	mu       sync.Mutex // guards done
	done     []string
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return e
}

// serve ends when the proxy closes its side.
func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	in := newWire(conn)
	for {
		words, _, err := in.request()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.done = append(e.done, strings.Join(words, " "))
		e.mu.Unlock()
		fmt.Fprint(conn, answer(words[0], words[1]))
	}
}

func answer(command, x string) string {
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(x), x)
	switch command {
	case "NESTED":
		return "|1\r\n+ttl\r\n:3\r\n%2\r\n+a\r\n*3\r\n#t\r\n_\r\n$-1\r\n+b\r\n~2\r\n,1.5\r\n=5\r\ntxt:" + x[:1] + "\r\n"
	case "PUSH":
		return ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n" + bulk + bulk
	case "SUBSCRIBE":
		return "*3\r\n$9\r\nsubscribe\r\n" + bulk + ":1\r\n"
	}
	return bulk
}

// carriedOut reports whether the server has seen the command.
func (e *echo) carriedOut(command string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range e.done {
		if d == command {
			return true
		}
	}
	return false
}

// A caller is a client of one connection.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(words ...string) {
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := c.conn.Write([]byte(b.String())); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads exactly want.
func (c *caller) expect(want string) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		m, err := c.in.Read(got[n:])
		if err != nil {
			c.t.Fatalf("after %q: %v, want %q", got[:n], err, want)
		}
		n += m
	}
	if string(got) != want {
		c.t.Fatalf("got %q, want %q", got, want)
	}
}

// expectSilence checks that nothing arrives for a while, and that the
// connection is open.
func (c *caller) expectSilence() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	b, err := c.in.ReadByte()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v, want silence", b, err)
	}
}

// expectReset checks that the connection breaks.
func (c *caller) expectReset() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(patience))
	b, err := c.in.ReadByte()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v, want a broken connection", b, err)
	}
}

// expectRefused checks that a new connection breaks, at once or soon.
func expectRefused(t *testing.T, p *Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return
	}
	defer conn.Close()
	(&caller{t, conn, bufio.NewReader(conn)}).expectReset()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// checkLeaks fails the test if goroutines that were started after this call are left at its end.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	})
}
