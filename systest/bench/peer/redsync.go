package peer

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredisclient "github.com/redis/go-redis/v9"
)

// patientTries is a number of tries that is never reached: redsync waits by trying again.
const patientTries = 1 << 30

// redsyncGoRedis is redsync on go-redis, with pauses of 1 to 5 ms in place of its 50 to 250.
func redsyncGoRedis() Peer {
	return redsyncOn("redsync go-redis", "pauses of 1 to 5 ms", func(addr string) (redis.Pool, func() error, error) {
		conn := dialGoRedis(addr)
		return goredis.NewPool(conn), conn.Close, nil
	}, redsync.WithRetryDelayFunc(func(int) time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) }))
}

// redsyncRueidis is the same on rueidis.
func redsyncRueidis() Peer {
	return redsyncOn("redsync rueidis", "pauses of 1 to 5 ms", openRueidisPool,
		redsync.WithRetryDelayFunc(func(int) time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) }))
}

// redsyncGoRedisDefault is redsync with its default settings except the number of tries: with the
// default of 32 it would give up, with nothing to measure.
func redsyncGoRedisDefault() Peer {
	return asDefault(redsyncOn("redsync go-redis default", "defaults, pauses of 50 to 250 ms", func(addr string) (redis.Pool, func() error, error) {
		conn := goredisclient.NewClient(&goredisclient.Options{Addr: addr})
		return goredis.NewPool(conn), conn.Close, nil
	}))
}

// redsyncRueidisDefault is the same on rueidis.
func redsyncRueidisDefault() Peer {
	return asDefault(redsyncOn("redsync rueidis default", "defaults, pauses of 50 to 250 ms", openRueidisPool))
}

func redsyncOn(name, settings string, open func(addr string) (redis.Pool, func() error, error), opts ...redsync.Option) Peer {
	return Peer{
		Name: name, Settings: settings, Store: Redis, Can: Takes | Waits, Key: sameKey,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			pool, closePool, err := open(addr)
			if err != nil {
				return nil, err
			}
			all := append([]redsync.Option{redsync.WithTries(patientTries)}, opts...)
			if ttl > 0 {
				all = append(all, redsync.WithExpiry(ttl))
			}
			return &redsyncClient{redsync.New(pool), all, closePool}, nil
		},
	}
}

type redsyncClient struct {
	sync  *redsync.Redsync
	opts  []redsync.Option
	close func() error
}

// A mutex has the size of a pointer, so that its conversion to Held does not allocate.
type mutex struct{ *redsync.Mutex }

func (m mutex) Release(ctx context.Context) error {
	ok, err := m.UnlockContext(ctx)
	if err == nil && !ok {
		err = errLost
	}
	return err
}

func (c *redsyncClient) Try(ctx context.Context, name string) (Held, error) {
	m := c.sync.NewMutex(name, c.opts...)
	return mutex{m}, m.TryLockContext(ctx)
}

func (c *redsyncClient) Wait(ctx context.Context, name string) (Held, error) {
	m := c.sync.NewMutex(name, c.opts...)
	return mutex{m}, m.LockContext(ctx)
}

func (c *redsyncClient) Close() error { return c.close() }
