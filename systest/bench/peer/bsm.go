package peer

import (
	"cmp"
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// bsmBest is bsm/redislock with a pause of 3 ms between tries.
func bsmBest() Peer {
	return bsmWith("bsm/redislock", "pauses of 3 ms", 3*time.Millisecond, dialGoRedis)
}

// bsmDefault is bsm/redislock with the pause of its documentation; by default it does not wait.
func bsmDefault() Peer {
	return asDefault(bsmWith("bsm/redislock default", "pauses of 100 ms, as documented", 100*time.Millisecond, func(addr string) *redis.Client {
		return redis.NewClient(&redis.Options{Addr: addr})
	}))
}

func bsmWith(name, settings string, pause time.Duration, dial func(addr string) *redis.Client) Peer {
	return Peer{
		Name: name, Settings: settings, Store: Redis, Can: Takes | Waits, Key: sameKey,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			conn := dial(addr)
			return &bsmClient{conn, redislock.New(conn), cmp.Or(ttl, TTL), pause}, nil
		},
	}
}

type bsmClient struct {
	conn   *redis.Client
	locker *redislock.Client
	ttl    time.Duration
	pause  time.Duration
}

func (c *bsmClient) Try(ctx context.Context, name string) (Held, error) {
	l, err := c.locker.Obtain(ctx, name, c.ttl, nil)
	return l, err
}

// Wait waits for the TTL at most, unless ctx has a deadline.
func (c *bsmClient) Wait(ctx context.Context, name string) (Held, error) {
	l, err := c.locker.Obtain(ctx, name, c.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(c.pause)})
	return l, err
}

func (c *bsmClient) Close() error { return c.conn.Close() }
