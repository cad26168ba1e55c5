package leasedoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// ann identifies ann as the caller of every request.
type ann struct{}

func (ann) Identify(*http.Request) (*caller.Caller, error) {
	return &caller.Caller{Name: "ann", Rights: caller.All}, nil
}

// openFar returns a server whose clients may connect through proxies.
func openFar(t *testing.T, engine driver.Engine) *site {
	return openWith(t, engine, server.Options{Callers: ann{}})
}

// openNear returns a server whose clients connect to a unix socket.
func openNear(t *testing.T, engine driver.Engine) *site {
	s := openFar(t, engine)
	inner := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"})
		inner.ServeHTTP(w, r.WithContext(ctx))
	})
	return s
}

// A wireTap is the connection of one stream, as the server sees it.
type wireTap struct {
	net.Conn // nil: other methods are not called
	t        *testing.T
	over     context.Context // ends with the connection
	cancel   context.CancelFunc
	done     chan struct{} // closed when the stream has ended
	header   http.Header

	mu       sync.Mutex
	status   int
	deaf     bool // what is written is not acknowledged
	full     bool // there is no room for another write
	deadline time.Time
	written  []heard
	rest     []byte
	waiting  int
	acked    uint64
}

// heard is a line with the time at which it was written.
type heard struct {
	wire.HoldLine
	at time.Time
}

// hold opens a stream.
func (s *site) hold(query, key string, req wire.LeaseRequest, with ...func(*http.Request)) *wireTap {
	s.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	c := &wireTap{t: s.T, over: ctx, cancel: cancel, done: make(chan struct{}), header: http.Header{}}
	r := httptest.NewRequestWithContext(server.ConnContext(ctx, c), "POST", "/v1/leases?hold=1"+query, bytes.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for _, f := range with {
		f(r)
	}
	go func() {
		defer close(c.done)
		s.handler.ServeHTTP(c, r)
	}()
	s.Cleanup(func() {
		cancel()
		<-c.done
	})
	synctest.Wait()
	return c
}

func (c *wireTap) Header() http.Header { return c.header }

func (c *wireTap) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *wireTap) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		wait := time.Until(c.deadline)
		c.mu.Unlock()
		defer c.mu.Lock()
		select {
		case <-time.After(wait):
			return 0, os.ErrDeadlineExceeded
		case <-c.over.Done():
			return 0, net.ErrClosed
		}
	}
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.deaf {
		c.waiting += len(p)
	} else {
		c.acked += uint64(len(p))
	}
	for c.rest = append(c.rest, p...); ; {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.rest = rest
		h := heard{at: time.Now()}
		if c.status == http.StatusOK {
			if err := json.Unmarshal(line, &h.HoldLine); err != nil {
				c.t.Errorf("a line is %q: %v", line, err)
			}
		} else {
			h.Detail = string(line)
		}
		c.written = append(c.written, h)
	}
}

func (c *wireTap) Flush() {}

func (c *wireTap) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

func (c *wireTap) SetReadDeadline(time.Time) error { return nil }

// Arrived implements the interface that package peer expects of a connection.
func (c *wireTap) Arrived() (waiting int, acked uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting, c.acked, true
}

// listen sets whether writes are acknowledged from now on.
func (c *wireTap) listen(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = !on
	if on {
		c.acked, c.waiting = c.acked+uint64(c.waiting), 0
	}
}

func (c *wireTap) close() {
	c.cancel()
	synctest.Wait()
}

// lines returns the lines that were written so far.
func (c *wireTap) lines() []heard {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]heard(nil), c.written...)
}

// last returns the last line, which must have the given event.
func (c *wireTap) last(event string) heard {
	c.t.Helper()
	all := c.lines()
	if len(all) == 0 || all[len(all)-1].Event != event {
		c.t.Fatalf("the last line is not %q: %+v", event, all)
	}
	return all[len(all)-1]
}

// ended checks that the stream has ended with a line of the given event.
func (c *wireTap) ended(event string) heard {
	c.t.Helper()
	last := c.last(event)
	select {
	case <-c.done:
	default:
		c.t.Fatalf("the stream goes on after %q", event)
	}
	return last
}

// events counts the lines with the given event.
func (c *wireTap) events(event string) (n int) {
	for _, l := range c.lines() {
		if l.Event == event {
			n++
		}
	}
	return n
}

// look returns the state of a lock in the store.
func look(t *testing.T, engine driver.Engine, name string) lockinfo.LockState {
	t.Helper()
	lock, err := engine.Inspect(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// freeAfter returns how long the name is still held, to within step.
func freeAfter(t *testing.T, engine driver.Engine, name string, step time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for len(look(t, engine, name).Holders) > 0 {
		time.Sleep(step)
		synctest.Wait()
	}
	return time.Since(began)
}
