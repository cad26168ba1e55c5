package goredislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// A wrapped client is a type of the program.
type wrapped struct{ redis.UniversalClient }

// TestNewRefuses checks that a client that cannot keep locks is refused at once, with the reason,
// and that nothing is sent.
func TestNewRefuses(t *testing.T) {
	server := testsvc.Redis(t)
	before, _ := server.Do("INFO", "commandstats")
	good := client(t, server, nil)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": server.Addr}})
	defer func() { _ = ring.Close() }()
	byFunction := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{server.Addr}, RouteRandomly: true})
	defer func() { _ = byFunction.Close() }()
	endless := client(t, server, func(o *redis.Options) { o.ReadTimeout = -1 })
	endlessly := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, ReadTimeout: -2})
	defer func() { _ = endlessly.Close() }()
	for what, c := range map[string]struct {
		client redis.UniversalClient
		opts   *Options
		want   string
	}{
		"nil":                       {nil, nil, "it is nil"},
		"a nil client":              {(*redis.Client)(nil), nil, "it is nil"},
		"a nil cluster client":      {(*redis.ClusterClient)(nil), nil, "it is nil"},
		"a ring":                    {ring, nil, "two could get the lock"},
		"a failover cluster client": {byFunction, nil, "use NewFailoverClient or NewClusterClient"},
		"one that waits forever":    {endless, nil, "has no ReadTimeout"},
		"a cluster client like it":  {endlessly, nil, "has no ReadTimeout"},
		"another type":              {wrapped{good}, nil, "a goredislock.wrapped does not tell"},
		"a bad prefix":              {good, &Options{Prefix: "a{b"}, "prefix"},
		"a bad token memory":        {good, &Options{TokenMemory: time.Second}, "TokenMemory"},
	} {
		e, err := New(c.client, c.opts)
		drivertest.WantIs(t, what, err, driver.ErrInvalid)
		if e != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error that says %q", what, e, err, c.want)
		}
	}
	if after, _ := server.Do("INFO", "commandstats"); strings.Count(after, "cmdstat_") > strings.Count(before, "cmdstat_")+1 {
		t.Errorf("something was sent:\n%s", after)
	}
}

// TestCallersClientStaysOpen checks that Close of the engine closes its own connections, and leaves
// the client unchanged.
func TestCallersClientStaysOpen(t *testing.T) {
	server := testsvc.Redis(t)
	c := client(t, server, nil)
	admin := client(t, server, nil)
	e, err := New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Granted(t, e, drivertest.Request("held", time.Minute))
	drivertest.Queued(t, e, "held", time.Minute)
	channels := func() int { return len(do(t, admin, "PUBSUB CHANNELS").([]any)) }
	drivertest.Eventually(t, "the subscription", func() bool { return channels() == 2 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	drivertest.Eventually(t, "the end of the subscription", func() bool { return channels() == 0 })
	_, err = e.Acquire(t.Context(), drivertest.Request("a", time.Minute))
	drivertest.WantIs(t, "acquire after Close", err, driver.ErrClosed)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's client: %v", err)
	}
}
