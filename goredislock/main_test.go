package goredislock

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// TestMain runs more tests at once than there are processors: they wait for real TTLs most of the
// time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	drivertest.ExitWithoutLeaks(m, []string{"/holdfast/", "/go-redis/"})
}

// client returns a client of one server that is closed with the test. change, unless nil, changes
// its options.
func client(t testing.TB, s *testsvc.Server, change func(*redis.Options)) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: s.Addr}
	if change != nil {
		change(opts)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// engine returns an engine that is closed with the test, before the client.
func engine(t testing.TB, c redis.UniversalClient, opts *Options) *Engine {
	t.Helper()
	e, err := New(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// dedicate returns a session of c.
func dedicate(t testing.TB, c *conn) rediscore.Session {
	t.Helper()
	s, err := c.Dedicate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do runs a command, written with spaces, that must not fail.
func do(t testing.TB, c redis.UniversalClient, command string, more ...any) any {
	t.Helper()
	var words []any
	for _, w := range strings.Fields(command) {
		words = append(words, w)
	}
	reply, err := c.Do(context.WithoutCancel(t.Context()), append(words, more...)...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// addrs returns the addresses of servers.
func addrs(servers []*testsvc.Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}
