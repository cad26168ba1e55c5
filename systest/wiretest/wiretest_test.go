package wiretest

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a holdfast server for a store.
func serve(tb testing.TB, store driver.Engine) *httptest.Server {
	tb.Helper()
	s, err := server.New(store, nil)
	if err != nil {
		tb.Fatal(err)
	}
	h := httptest.NewUnstartedServer(exchange.Recorded(tb, s))
	server.Configure(h.Config)
	h.Start()
	tb.Cleanup(func() {
		_ = s.Close(context.Background()) // ends the streams
		h.Close()
	})
	return h
}

// direct opens a store in Redis.
func direct(tb testing.TB, redis *testsvc.Server) *redislock.Engine {
	tb.Helper()
	return drivertest.Open(tb, redislock.Open, redis.URL)
}

// over opens an engine that sends its requests to servers.
func over(tb testing.TB, urls ...string) *httplock.Engine {
	tb.Helper()
	all := "http://" + strings.ReplaceAll(strings.Join(urls, ","), "http://", "")
	open := func(ctx context.Context, url string) (*httplock.Engine, error) { return httplock.Open(ctx, url, nil) }
	return drivertest.Open(tb, open, all)
}

// TestConformance runs the conformance suite on Redis, through one server.
func TestConformance(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	urls := map[driver.Engine]string{}
	conform(t, redis, func(tb testing.TB) driver.Engine {
		url := serve(tb, direct(tb, redis)).URL
		e := over(tb, url)
		urls[e] = url
		return e
	}, func(tb testing.TB, e driver.Engine) driver.Engine { return over(tb, urls[e]) })
}

// TestConformanceOfTwo runs the suite through two servers, each with its own connections.
func TestConformanceOfTwo(t *testing.T) {
	t.Parallel()
	redis := testsvc.Redis(t)
	open := func(tb testing.TB) driver.Engine { return over(tb, serve(tb, direct(tb, redis)).URL) }
	conform(t, redis, open, func(tb testing.TB, _ driver.Engine) driver.Engine { return open(tb) })
}

func conform(t *testing.T, redis *testsvc.Server, open func(testing.TB) driver.Engine, join func(testing.TB, driver.Engine) driver.Engine) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			if _, err := redis.Do("FLUSHALL"); err != nil {
				tb.Fatal(err)
			}
			return open(tb)
		},
		Join: join,
		Unit: 400 * time.Millisecond,
	})
}
