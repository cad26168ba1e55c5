package redislock

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

func TestMain(m *testing.M) {
	// The client library reads the topology a little later, and closes connections to nodes that it
	// no longer knows after five seconds, even if the client was closed meanwhile.
	drivertest.ExitWithoutLeaks(m, []string{"/holdfast/", "/rueidis"},
		"rueidis.(*clusterClient)._refresh.func2", "rueidis.(*clusterClient).redirectOrNew.func1", "rueidis.(*call).DelayDo.func1")
}

// engineOn returns an engine on a client that is closed with the test.
func engineOn(t testing.TB, client rueidis.Client, opts *Options) *Engine {
	t.Helper()
	e, err := New(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// engineOnConn returns an engine on a connection.
func engineOnConn(t testing.TB, conn rediscore.Conn) *Engine {
	t.Helper()
	e, err := newEngine(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// guardOn returns a guard on an engine's connection.
func guardOn(t testing.TB, e *Engine, opts *redisfence.Options) *redisfence.Guard {
	t.Helper()
	g, err := redisfence.New(e, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// open returns an engine that is closed with the test.
func open(t testing.TB, url string) *Engine {
	t.Helper()
	return drivertest.Open(t, Open, url)
}

// plain returns a client without holdfast.
func plain(t testing.TB, s *testsvc.Server) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr}, ForceSingleClient: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		PipelineMultiplex: -1, // one connection, so that no new one shows in the server's statistics
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// do runs a command, written with spaces, that must not fail.
func do(t testing.TB, client rueidis.Client, command string, more ...string) rueidis.RedisResult {
	t.Helper()
	words := append(strings.Fields(command), more...)
	r := client.Do(t.Context(), client.B().Arbitrary(words...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

// text runs a command with a string as reply; "" for nil.
func text(t testing.TB, client rueidis.Client, command string, more ...string) string {
	t.Helper()
	s, err := do(t, client, command, more...).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s: %v", command, err)
	}
	return s
}

// number runs a command with a number as reply.
func number(t testing.TB, client rueidis.Client, command string, more ...string) int64 {
	t.Helper()
	n, err := do(t, client, command, more...).AsInt64()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return n
}
