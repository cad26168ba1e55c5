package httplock_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestClosedMeanwhile checks that a request is not sent on a connection that the server has closed
// since the last request, because its outcome would be unknown.
func TestClosedMeanwhile(t *testing.T) {
	t.Run("pipe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := mem.New(nil)
			n, e := served(t, store)
			for range 3 {
				drivertest.Cycle(t, e, "job")
				n.host(first).kill()
				n.with(t, first, store, nil)
			}
			drivertest.Cycle(t, e, "job")
		})
	})
	t.Run("system", func(t *testing.T) {
		s, err := server.New(mem.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		var conns atomic.Int64
		h := httptest.NewUnstartedServer(s)
		server.Configure(h.Config)
		h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		h.Start()
		t.Cleanup(func() {
			_ = s.Close(context.Background())
			h.Close()
		})
		e, err := httplock.Open(t.Context(), h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		for range 10 {
			drivertest.Cycle(t, e, "job")
			h.CloseClientConnections()
		}
		if n := conns.Load(); n != 10 {
			t.Errorf("%d connections, want 10: one for all that is asked until it is closed", n)
		}
	})
}

// TestIdleConnections checks that an unused connection is closed after 90 s.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e := served(t, mem.New(nil))
		for range 3 {
			if _, err := e.Inspect(t.Context(), "job"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		began := time.Now()
		n.host(first).conns.Wait()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("closed after %s more, want 90 s after the last request", took)
		}
	})
}

// TestSilentServer checks that a request to a silent server waits until its context ends, and that
// the next request does not receive the late reply.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := &badDay{}
		_, e := served(t, mem.New(nil), day.around)
		day.reply = func(http.ResponseWriter, *httptest.ResponseRecorder) { time.Sleep(time.Minute) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := e.Inspect(ctx, "job")
		drivertest.WantIs(t, "inspect", err, context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s", took)
		}
		synctest.Wait() // the handler has read the request
		day.reply = nil
		drivertest.Cycle(t, e, "job")
		time.Sleep(time.Minute) // the server's handler ends
	})
}
