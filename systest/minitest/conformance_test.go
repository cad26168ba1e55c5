package minitest

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/faketest"
	"github.com/holdfast-locks/holdfast/redislock"
)

// fails are the requirements that redislock fails on miniredis, and what is said then.
// docs/testing.md has the reasons.
var fails = map[string]string{
	"MinTokenTooFarAheadIsInvalid": "attempt to compare number with nil", // tonumber of 2^64-1 is nil
}

// TestConformance runs the suite on miniredis, in virtual time. A requirement that is
// to fail must, so that nobody is told what has been mended.
func TestConformance(t *testing.T) {
	h := harness()
	var applies map[string]bool
	synctest.Test(t, func(t *testing.T) { applies = enginetest.Applicable(t, h) })
	failed := 0
	for _, r := range enginetest.Requirements() {
		if !applies[r.Name] {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				says, known := fails[r.Name]
				if !known {
					r.Check(t, h)
					return
				}
				failed++
				texts := faketest.Run(t, func(t testing.TB) { r.Check(t, h) })
				if !strings.Contains(strings.Join(texts, "\n"), says) {
					t.Errorf("it fails with %q, want one that says %q: if it passes, take it out of fails and docs/testing.md", texts, says)
				}
			})
		})
	}
	if failed != len(fails) {
		t.Errorf("%d requirements are to fail, and %d of them are there", len(fails), failed)
	}
}

// harness is the suite's way to engines on servers of their own, which live in a
// bubble: connections are pipes.
func harness() enginetest.Harness {
	servers := map[driver.Engine]*miniredis.Miniredis{}
	connect := func(t testing.TB, server *miniredis.Miniredis) driver.Engine {
		e := redislock.New(dial(t, server), nil)
		servers[e] = server
		return e
	}
	return enginetest.Harness{
		Open:   func(t testing.TB) driver.Engine { return connect(t, start(t)) },
		Join:   func(t testing.TB, e driver.Engine) driver.Engine { return connect(t, servers[e]) },
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

// start starts a server that goes by the time of the bubble, and listens nowhere.
func start(t testing.TB) *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	t.Cleanup(server.Close)
	return server
}

// dial returns a client of a server that listens nowhere.
func dial(t testing.TB, server *miniredis.Miniredis) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"miniredis:6379"}, // which nobody looks up
		DialCtxFn:         func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return server.Dial() },
		DisableCache:      true, // it has no CLIENT TRACKING
		ForceSingleClient: true, DisableRetry: true, AlwaysPipelining: true, PipelineMultiplex: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
