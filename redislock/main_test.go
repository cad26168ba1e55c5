package redislock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what a test waits for on a loaded machine.
const patience = 20 * time.Second

// open returns an engine that is closed with the test.
func open(t testing.TB, url string) *Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := Open(ctx, url)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// plain returns a client that knows nothing of holdfast.
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

// text runs a command that answers with a string; "" if with nil.
func text(t testing.TB, client rueidis.Client, command string, more ...string) string {
	t.Helper()
	s, err := do(t, client, command, more...).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s: %v", command, err)
	}
	return s
}

// number runs a command that answers with a number.
func number(t testing.TB, client rueidis.Client, command string, more ...string) int64 {
	t.Helper()
	n, err := do(t, client, command, more...).AsInt64()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return n
}

// request returns an acquire request of a fresh lease ID.
func request(name string, ttl time.Duration) driver.AcquireRequest {
	return driver.AcquireRequest{
		Name: name, LeaseID: driver.NewLeaseID(), TTL: ttl,
		Holder: driver.Holder{Host: "web-3", PID: 812, Label: "nightly job"},
	}
}

// granted acquires a lock that must be free, and returns the token.
func granted(t testing.TB, e *Engine, req driver.AcquireRequest) uint64 {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("acquire: %+v, %v; want a grant", reply, err)
	}
	return reply.Token
}

// held fails to acquire a lock, and returns what is in the way.
func held(t testing.TB, e *Engine, req driver.AcquireRequest) driver.InTheWay {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Held {
		t.Fatalf("acquire: %+v, %v; want held", reply, err)
	}
	return reply.InTheWay
}

// eventually polls until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
