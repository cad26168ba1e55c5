package systest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestStreamsBehindProxies checks proxies with default settings on the server's host, which do not
// forward the clients' addresses. A proxy is killed, or shut down, while clients work behind it.
// These clients have not ended, and work on until their own rule stops them; the lock must not be
// granted before.
func TestStreamsBehindProxies(t *testing.T) {
	t.Parallel()
	for what, start := range map[string]func(t *testing.T, server string) *testsvc.Server{
		"nginx": func(t *testing.T, server string) *testsvc.Server {
			return testsvc.Nginx(t, "location / { proxy_pass http://"+server+"; }")
		},
		"HAProxy":     func(t *testing.T, server string) *testsvc.Server { return testsvc.HAProxy(t, "http", server) },
		"a TCP relay": func(t *testing.T, server string) *testsvc.Server { return testsvc.HAProxy(t, "tcp", server) },
		"the inbound side of a mesh": func(t *testing.T, server string) *testsvc.Server {
			return testsvc.HAProxy(t, "tcp", server+" source 127.0.0.6")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			_, url := startServer(t, s.server.URL)
			p := start(t, strings.TrimPrefix(url, "http://"))
			ends, names := soak.Count(4, 100), 4
			var spans []span
			for i := range ends {
				end := p.Kill
				if i%2 == 1 {
					end = p.ShutDown
				}
				spans = append(spans, takeOver(t, fmt.Sprint(t.Name(), "/", i), names, "http://"+p.Addr, url, end)...)
				p.Restart()
			}
			report.Row(t, what+", on the server's host, is killed and shut down", "never two at work by the clients' own rule, tokens grow",
				"%d ends with %d at work behind it, the next at the earliest %s after the last, TTL %s",
				ends, names, apart(t, spans).Round(time.Millisecond), streamTTL)
			if want := 2 * names * ends; len(spans) != want {
				t.Errorf("%d turns, want %d", len(spans), want)
			}
		})
	}
}

// takeOver lets clients acquire locks through a proxy, and others wait for the locks at the server.
// Then it ends the proxy. It returns when each client worked.
func takeOver(t *testing.T, prefix string, names int, proxy, server string, end func()) (spans []span) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var clients []*streamer
	// begin starts a client. The channels it returns are closed when the client is queued, has the
	// lock, and has stopped.
	begin := func(url, name string) (queued, acquired, stopped chan struct{}) {
		queued, acquired, stopped = make(chan struct{}), make(chan struct{}), make(chan struct{})
		events := map[string]chan struct{}{"queued": queued, "acquired": acquired}
		c := &streamer{urls: []string{url}, req: wire.LeaseRequest{Name: name, TTLMS: streamTTL.Milliseconds(), WaitMS: time.Hour.Milliseconds()}}
		c.told = func(l wire.HoldLine, _ time.Time) {
			if ch, ok := events[l.Event]; ok {
				delete(events, l.Event)
				close(ch)
			}
		}
		clients = append(clients, c)
		all.Go(func() {
			_ = c.hold(ctx)
			close(stopped)
		})
		return queued, acquired, stopped
	}
	var over []chan struct{}
	for i := range names {
		name := fmt.Sprint(prefix, "/", i)
		_, has, stopped := begin(proxy, name)
		await(t, has)
		waits, acquired, _ := begin(server, name)
		await(t, waits)
		over = append(over, stopped, acquired)
	}
	end()
	for _, c := range over {
		await(t, c)
	}
	cancel()
	all.Wait()
	for _, c := range clients {
		spans = append(spans, c.spans...)
	}
	return spans
}

// await waits until a channel is closed.
func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("not within %s", patience)
	}
}
