package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
	"github.com/holdfast-locks/holdfast/wire"
)

// streamTTL is the TTL of streams; the client's rule then allows one second without a line.
const streamTTL = 3 * time.Second

// streamers returns n clients for each of four names.
func streamers(t *testing.T, n int, query string, urls ...string) (all []*streamer) {
	for i := range 4 {
		for range n {
			all = append(all, &streamer{urls: urls, query: query, req: wire.LeaseRequest{
				Name: fmt.Sprintf("%s/%d", t.Name(), i), TTLMS: streamTTL.Milliseconds(), WaitMS: time.Hour.Milliseconds(),
			}})
		}
	}
	return all
}

// seldom returns a function that calls f at intervals of about d, for as long as the test lasts.
func seldom(t *testing.T, d time.Duration, f func()) func(context.Context) {
	return func(ctx context.Context) {
		end := time.Now().Add(soak.For(5*time.Second, 2*time.Minute))
		for time.Now().Before(end) {
			time.Sleep(d/2 + rand.N(d))
			f()
		}
	}
}

// told reports the turns, and fails t if there were fewer than two.
func told(t *testing.T, fault string, spans []span) {
	t.Helper()
	closest := apart(t, spans)
	report.Row(t, fault, "never two at work by the clients' own rule, tokens grow",
		"%d turns, the next at the earliest %s after the last, TTL %s", len(spans), closest.Round(time.Millisecond), streamTTL)
	if len(spans) < 2 {
		t.Errorf("%d turns, want some", len(spans))
	}
}

// TestStreamsResetAtServer checks a proxy that resets only the server's side. The clients do not
// notice, and work until their rule stops them; the server must not free the lock before.
func TestStreamsResetAtServer(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	_, url := startServer(t, s.server.URL)
	p := newMiddle(t, strings.TrimPrefix(url, "http://"))
	spans := contend(t, streamers(t, 3, "", p.url()), streamTTL/4, seldom(t, streamTTL/2, p.reset))
	told(t, "a TCP proxy resets only the server's side of hold streams", spans)
}

// TestStreamsKeptLines checks a proxy that delays lines for three times the client's rule. The
// clients must notice that the lines are old.
func TestStreamsKeptLines(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	_, url := startServer(t, s.server.URL)
	p := newMiddle(t, strings.TrimPrefix(url, "http://"))
	kept := 0
	spans := contend(t, append(streamers(t, 2, "", p.url()), streamers(t, 2, "", url)...), streamTTL/4,
		seldom(t, streamTTL/2, func() {
			if kept++; kept%2 == 0 {
				p.keep(0)
				return
			}
			p.keep(streamTTL)
			p.reset()
		}))
	told(t, "a TCP proxy keeps the lines of hold streams for 3 times the client's rule, and resets the server's side", spans)
}

// TestStreamsStoppedServers checks streams while servers are stopped, or cut off from the store.
func TestStreamsStoppedServers(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cuts := []*faultproxy.Proxy{faultproxy.New(t, s.server.Addr), faultproxy.New(t, s.server.Addr)}
	var servers []*traffic.Crew
	var urls []string
	for _, p := range cuts {
		c, url := startServer(t, "redis://"+p.Addr())
		servers, urls = append(servers, c), append(urls, url)
	}
	clients := append(streamers(t, 2, "&direct=1", urls...), streamers(t, 2, "", urls[1], urls[0])...)
	spans := contend(t, clients, streamTTL/4, seldom(t, streamTTL/4, func() {
		i := rand.IntN(2)
		if rand.IntN(2) == 0 {
			servers[i].Stop()
			time.Sleep(rand.N(3 * streamTTL / 2))
			servers[i].Cont()
			return
		}
		cuts[i].BlackHole()
		time.Sleep(rand.N(3 * streamTTL / 2))
		cuts[i].Heal()
	}))
	told(t, "servers are stopped by SIGSTOP, and cut off from the store, under hold streams", spans)
}
