package traffic

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/stores"
)

// A Kind is an engine for Redis. Each uses package rediscore over another client library.
type Kind string

const (
	Redislock   Kind = "redislock"   // over rueidis
	Goredislock Kind = "goredislock" // over go-redis
)

// Kinds are all kinds.
var Kinds = []Kind{Redislock, Goredislock}

// Open opens the engine of a URL. "memory:" is a store in this process.
func Open(ctx context.Context, by Kind, rawURL string) (driver.Engine, error) {
	if by != Goredislock {
		return stores.Open(ctx, rawURL)
	}
	p, err := parsePlace(rawURL)
	if err != nil {
		return nil, err
	}
	client := p.goRedis(time.Second/2, nil) // a cluster client tries one node after the other
	engine, err := goredislock.New(client, nil)
	if err != nil {
		return nil, err
	}
	return &owner{engine, client}, nil
}

// An owner is an engine with its own client.
type owner struct {
	*goredislock.Engine
	client redis.UniversalClient
}

// Close implements driver.Engine.
func (o *owner) Close() error {
	err := o.Engine.Close()
	_ = o.client.Close()
	return err
}

// silentFor is how long a reply may be missing on a connection of Locks before the connection is
// replaced.
const silentFor = 100 * time.Millisecond

// openImpatient opens the engine of Locks, which soon notices a silent connection if it is an
// engine for Redis.
func (j Job) openImpatient(ctx context.Context) (driver.Engine, func(), error) {
	if !strings.HasPrefix(j.Store, "redis") {
		e, err := Open(ctx, j.By, j.Store)
		return e, func() { _ = e.Close() }, err
	}
	p, err := parsePlace(j.Store)
	if err != nil {
		return nil, nil, err
	}
	if j.By == Goredislock {
		client := p.goRedis(silentFor, j.Via)
		engine, err := goredislock.New(client, nil)
		return engine, func() { _ = client.Close() }, err
	}
	client, err := p.rueidis(j.Via)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
		time.Sleep(silentFor)
		client, err = p.rueidis(j.Via)
	}
	if err != nil {
		return nil, nil, err
	}
	// Closing the client takes a second if a connection is silent. The client ends with the crew.
	engine, err := redislock.New(client, nil)
	return engine, func() {}, err
}

// A place is a parsed store URL of a test.
type place struct {
	addrs   []string // of the servers, or of the sentinels
	master  string   // name of the master, for the sentinels
	cluster bool
}

// parsePlace parses URLs with redis://, redis+sentinel:// and redis+cluster://, without options.
func parsePlace(rawURL string) (place, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	hosts, path, _ := strings.Cut(rest, "/")
	p := place{addrs: strings.Split(hosts, ",")}
	switch {
	case scheme == "redis" && path == "":
	case scheme == "redis+cluster" && path == "":
		p.cluster = true
	case scheme == "redis+sentinel" && path == url.PathEscape(path):
		p.master = path
	default:
		return p, fmt.Errorf("this test does not know the store %s", rawURL)
	}
	return p, nil
}

// goRedis returns a go-redis client that waits for replies for silent. It dials via[addr] instead
// of addr if via has it.
func (p place) goRedis(silent time.Duration, via map[string]string) redis.UniversalClient {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, through(via, addr))
	}
	switch {
	case p.cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: p.addrs, Dialer: dial, ReadTimeout: silent, WriteTimeout: silent})
	case p.master != "":
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: p.master, SentinelAddrs: p.addrs, Dialer: dial, ReadTimeout: silent, WriteTimeout: silent, Protocol: 2,
		})
	}
	return redis.NewClient(&redis.Options{Addr: p.addrs[0], Dialer: dial, ReadTimeout: silent, WriteTimeout: silent})
}

// rueidis is goRedis for rueidis.
func (p place) rueidis(via map[string]string) (rueidis.Client, error) {
	opts := rueidis.ClientOption{
		InitAddress: p.addrs, ForceSingleClient: !p.cluster && p.master == "", DisableRetry: true, DisableCache: true,
		AlwaysPipelining: true, PipelineMultiplex: -1, ClientSetInfo: rueidis.DisableClientSetInfo,
		ConnWriteTimeout: silentFor, Dialer: net.Dialer{Timeout: time.Second, KeepAlive: silentFor / 2},
	}
	opts.Sentinel.MasterSet, opts.Sentinel.Dialer = p.master, opts.Dialer
	opts.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", through(via, addr))
	}
	return rueidis.NewClient(opts)
}

// through returns the address to dial for a server.
func through(via map[string]string, addr string) string {
	if other, ok := via[addr]; ok {
		return other
	}
	return addr
}
