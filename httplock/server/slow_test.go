package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns chan net.Conn
	close func()
	done  chan struct{}
}

func listen() *pipes {
	done := make(chan struct{})
	return &pipes{make(chan net.Conn), sync.OnceFunc(func() { close(done) }), done}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// TestSlowClients checks that the server closes the connection of a client that sends or reads
// nothing.
func TestSlowClients(t *testing.T) {
	const half = "POST /v1/leases/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
	for name, c := range map[string]struct {
		sent   string
		after  time.Duration
		status int // 0: no reply
	}{
		"silent":               {"", 10 * time.Second, 0},
		"half a header":        {"POST /v1/leases HTTP/1.1\r\nHost:", 10 * time.Second, 0},
		"half a body":          {half, 10 * time.Second, http.StatusRequestTimeout},
		"no body, refused":     {"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", 10 * time.Second, http.StatusNotFound},
		"nothing after answer": {"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 3 * time.Minute, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := open(t, server.Options{})
				h := &http.Server{Handler: s}
				server.Configure(h)
				l := listen()
				go h.Serve(l) // ends when h is closed
				defer h.Close()
				conn, start := l.dial(), time.Now()
				defer conn.Close()
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn) // until the server closes the connection
				if took := time.Since(start); took < c.after || took > c.after+5*time.Second {
					t.Errorf("cut off after %s, want %s", took, c.after)
				}
				status := 0
				if resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil); err == nil {
					status = resp.StatusCode
				}
				if status != c.status {
					t.Errorf("%q (%v), want %d", answer, err, c.status)
				}
			})
		})
	}
}

// TestUnreadAnswer checks that a client that does not read a reply is cut off, however long the
// reply is.
func TestUnreadAnswer(t *testing.T) {
	for name, request := range map[string]string{
		"a refusal":       "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a list":          "GET /v1/locks HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n",
		"a list, engines": "POST /v1/driver/list HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n" + `{"prefix":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := open(t, server.Options{})
				for n := range 200 {
					take(t, s, n)
				}
				h := &http.Server{Handler: s}
				server.Configure(h)
				l := listen()
				go h.Serve(l) // ends when h is closed
				defer h.Close()
				conn := l.dial()
				defer conn.Close()
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Minute) // an engine may take 5 minutes for a page of a list
				if answer, err := io.ReadAll(conn); len(answer) > 0 || err != nil {
					t.Errorf("%q, %v: want the connection closed", answer, err)
				}
			})
		})
	}
}

// take acquires the lock with the given number.
func take(t *testing.T, s http.Handler, n int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/leases", strings.NewReader(fmt.Sprintf(`{"name":"n/%d"}`, n)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "0123456789-0123456789")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
}
