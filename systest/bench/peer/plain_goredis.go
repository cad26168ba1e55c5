package peer

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// poolSize is how many connections go-redis may have with the best settings. It sends one request
// at a time on each. A larger pool is slower.
const poolSize = 64

// dialGoRedis connects with the best settings: a pool for which 64 callers do not wait.
func dialGoRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize, MaxIdleConns: poolSize, DisableIdentity: true})
}

// plainGoRedis is plainRueidis on go-redis.
func plainGoRedis() (plainPeer, fencePeer Peer) {
	return plain("go-redis", func(fences bool) opener {
		return func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			return &goRedisClient{
				conn: dialGoRedis(addr), ttl: cmp.Or(ttl, TTL), fences: fences,
				fenced: redis.NewScript(fenceText), released: redis.NewScript(releaseText),
			}, nil
		}
	})
}

type goRedisClient struct {
	noWait
	conn             *redis.Client
	ttl              time.Duration
	fences           bool
	fenced, released *redis.Script
}

// A goRedisLock is a lock that was taken by a goRedisClient.
type goRedisLock struct {
	client      *goRedisClient
	name, value string
}

func (c *goRedisClient) Try(ctx context.Context, name string) (Held, error) {
	l := &goRedisLock{c, name, value()}
	var err error
	if c.fences {
		err = c.fenced.Run(ctx, c.conn, []string{name, fenceKey(name)}, l.value, c.ttl.Milliseconds()).Err()
	} else {
		err = c.conn.SetArgs(ctx, name, l.value, redis.SetArgs{Mode: "NX", TTL: c.ttl}).Err()
	}
	if errors.Is(err, redis.Nil) {
		err = errHeld
	}
	return l, err
}

func (l *goRedisLock) Release(ctx context.Context) error {
	n, err := l.client.released.Run(ctx, l.client.conn, []string{l.name}, l.value).Int()
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

func (c *goRedisClient) Close() error { return c.conn.Close() }
