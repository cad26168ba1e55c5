package httplock_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
)

// TestGoneCaller checks that a queued request is not carried out if its caller has hung up in the
// meantime.
func TestGoneCaller(t *testing.T) {
	const callers = 200
	var asked atomic.Int64
	s, err := server.New(counting(&asked), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	var answered sync.WaitGroup
	answered.Add(callers + 1)
	stopped := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer answered.Done()
		s.ServeHTTP(w, r)
	}))
	server.Configure(stopped.Config)
	t.Cleanup(stopped.Close)
	send := func() net.Conn {
		c, err := net.Dial("tcp", stopped.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		head, body := text(t, "")
		if _, err := io.WriteString(c, head+body); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range callers {
		_ = send().Close()
	}
	there := send()
	t.Cleanup(func() { _ = there.Close() })
	stopped.Start()
	answered.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests were carried out, want that of the one caller who is there", n)
	}
}
