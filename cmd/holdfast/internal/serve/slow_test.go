package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/memlock"
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func newPipes() *pipes {
	done := make(chan struct{})
	return &pipes{make(chan net.Conn), done, sync.OnceFunc(func() { close(done) })}
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

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// serving calls f with the listeners of a service, in virtual time.
func serving(t *testing.T, f func(t *testing.T, engine driver.Engine, locks, metrics *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := memlock.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Engine: engine, Log: slog.New(slog.DiscardHandler), Drain: time.Second, Metrics: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			s.Shutdown(t.Context())
			_ = engine.Close()
		}()
		locks, metrics := newPipes(), newPipes()
		s.Serve(locks)
		s.ServeMetrics(metrics)
		f(t, engine, locks, metrics)
	})
}

// TestUnreadResponses: a client that does not read a response is cut off after 30 s.
func TestUnreadResponses(t *testing.T) {
	serving(t, func(t *testing.T, _ driver.Engine, locks, metrics *pipes) {
		for _, to := range []*pipes{locks, metrics} {
			for _, path := range []string{"/healthz", "/readyz", "/metrics", "/nothing", "/main.js", "/status.json"} {
				conn, _ := to.dial(t.Context(), "", "")
				if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(31 * time.Second)
				if text, err := io.ReadAll(conn); len(text) > 0 || err != nil {
					t.Errorf("%s: %q, %v: want the connection closed", path, text, err)
				}
			}
		}
	})
}

// TestLongWaits checks that the limit for unread responses does not end a wait for a lock.
func TestLongWaits(t *testing.T) {
	for name, protocol := range map[string]func(*http.Protocols, bool){
		"HTTP/1": (*http.Protocols).SetHTTP1, "HTTP/2": (*http.Protocols).SetUnencryptedHTTP2,
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, func(t *testing.T, engine driver.Engine, locks, _ *pipes) {
				id := lockinfo.NewLeaseID()
				if _, err := engine.Acquire(t.Context(), driver.AcquireRequest{Name: "a", LeaseID: id, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(50*time.Second, func() {
					if err := engine.Release(context.Background(), driver.ReleaseRequest{Name: "a", LeaseID: id}); err != nil {
						t.Error(err)
					}
				})
				transport := &http.Transport{DialContext: locks.dial, Protocols: new(http.Protocols)}
				defer transport.CloseIdleConnections()
				protocol(transport.Protocols, true)
				client := &http.Client{Transport: transport}
				resp, err := client.Post("http://localhost/v1/leases", "application/json", strings.NewReader(`{"name":"a","wait_ms":55000}`))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusCreated {
					t.Errorf("status %d, want 201", resp.StatusCode)
				}
			})
		})
	}
}
