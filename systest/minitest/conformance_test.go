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
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/internal/faketest"
	"github.com/holdfast-locks/holdfast/redislock"
)

// fails are the requirements that both engines fail on miniredis, each with a part of the error.
// docs/testing.md has the reasons.
var fails = map[string]string{
	"MinTokenTooFarAheadIsInvalid": "attempt to compare number with nil", // tonumber of 2^64-1 is nil
}

// TestConformance runs the suite on miniredis, in virtual time.
func TestConformance(t *testing.T) {
	runSuite(t, func(t testing.TB, server *miniredis.Miniredis) driver.Engine {
		e, err := redislock.New(dial(t, server), nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

// TestConformanceOfGoredislock runs the suite with goredislock.
func TestConformanceOfGoredislock(t *testing.T) {
	runSuite(t, func(t testing.TB, server *miniredis.Miniredis) driver.Engine {
		client := redis.NewClient(&redis.Options{
			Addr:   "127.0.0.1:6379", // never dialed; a host name would be looked up outside of the bubble
			Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		})
		t.Cleanup(func() { _ = client.Close() })
		e, err := goredislock.New(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

// runSuite checks the engines that connect returns. Each requirement in fails must fail, so that
// docs/testing.md stays true.
func runSuite(t *testing.T, connect func(testing.TB, *miniredis.Miniredis) driver.Engine) {
	h := harness(connect)
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

// harness returns a harness whose engines have their own servers inside a bubble. Connections are
// pipes.
func harness(connect func(testing.TB, *miniredis.Miniredis) driver.Engine) enginetest.Harness {
	servers := map[driver.Engine]*miniredis.Miniredis{}
	open := func(t testing.TB, server *miniredis.Miniredis) driver.Engine {
		e := connect(t, server)
		servers[e] = server
		return e
	}
	return enginetest.Harness{
		Open:   func(t testing.TB) driver.Engine { return open(t, start(t)) },
		Join:   func(t testing.TB, e driver.Engine) driver.Engine { return open(t, servers[e]) },
		Unit:   time.Second,
		Bubble: synctest.Test,
	}
}

// start starts a server that uses the time of the bubble and does not listen.
func start(t testing.TB) *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	t.Cleanup(server.Close)
	return server
}

// dial returns a client of a server that does not listen.
func dial(t testing.TB, server *miniredis.Miniredis) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"miniredis:6379"}, // never looked up
		DialCtxFn:         func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return server.Dial() },
		DisableCache:      true, // miniredis has no CLIENT TRACKING
		ForceSingleClient: true, DisableRetry: true, AlwaysPipelining: true, PipelineMultiplex: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
