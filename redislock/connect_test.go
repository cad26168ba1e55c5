package redislock

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestConnectingForAnother checks that a request that waits for a connection does not end with the
// context of the request that opens it.
func TestConnectingForAnother(t *testing.T) {
	p := faultproxy.New(t, testsvc.Redis(t).Addr)
	e := open(t, "redis://"+p.Addr())
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if r.Command() != "HELLO" {
			return faultproxy.Action{}
		}
		begun <- struct{}{}
		return faultproxy.Action{Hold: goOn}
	})
	p.Drop()
	inspect := func(ctx context.Context) <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := e.Inspect(ctx, "a")
			answer <- err
		}()
		return answer
	}
	ctx, end := context.WithTimeout(t.Context(), minTimeout/2)
	defer end()
	first := inspect(ctx)
	for connecting := false; !connecting; {
		select {
		case <-begun:
			connecting = true
		case <-first: // the first request met the end of the connection before
			first = inspect(ctx)
		}
	}
	second := inspect(t.Context())
	awaitConnecting(t, 2)
	<-first
	close(goOn)
	if err := <-second; err != nil {
		t.Errorf("what waited for the connection of another: %v", err)
	}
}

// awaitConnecting waits until n requests are connecting, or wait for a connection.
func awaitConnecting(t *testing.T, want int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(10 * time.Second); ; {
		n := runtime.Stack(stacks, true)
		if strings.Count(string(stacks[:n]), "rueidis.(*mux)._pipe(") >= want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests never came to wait for one connection", want)
		}
		runtime.Gosched()
	}
}
