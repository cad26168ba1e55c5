package peer

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/rueidis"
)

// dialRueidis connects as a program does that uses one server and no cache.
func dialRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
}

// plainRueidis is the least that a lock can do: no token, no renewal, no queue.
func plainRueidis() Peer {
	return Peer{
		Name: "plain rueidis", Settings: "SET NX PX", Floor: true, Store: Redis, Can: Takes, Key: sameKey,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			return openPlain(addr, ttl, (*plainClient).set)
		},
	}
}

// fenceRueidis is the least that a lock with a fencing token can do.
func fenceRueidis() Peer {
	return Peer{
		Name: "fence rueidis", Settings: "SET NX PX, INCR", Floor: true, Store: Redis, Can: Takes, Key: sameKey,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			return openPlain(addr, ttl, (*plainClient).fence)
		},
	}
}

// take is one of the two ways to take a plain lock.
type take func(c *plainClient, ctx context.Context, name, value string) error

type plainClient struct {
	noWait
	conn             rueidis.Client
	take             take
	ttl              time.Duration
	ttlText          string
	fenced, released *rueidis.Lua
}

func openPlain(addr string, ttl time.Duration, take take) (Client, error) {
	conn, err := dialRueidis(addr)
	if err != nil {
		return nil, err
	}
	ttl = cmp.Or(ttl, TTL)
	return &plainClient{
		conn: conn, take: take, ttl: ttl, ttlText: millis(ttl),
		fenced: rueidis.NewLuaScript(fenceText), released: rueidis.NewLuaScript(releaseText),
	}, nil
}

func (c *plainClient) set(ctx context.Context, name, value string) error {
	cmd := c.conn.B().Set().Key(name).Value(value).Nx().Px(c.ttl).Build()
	return heldIfNil(c.conn.Do(ctx, cmd).Error())
}

func (c *plainClient) fence(ctx context.Context, name, value string) error {
	return heldIfNil(c.fenced.Exec(ctx, c.conn, []string{name, fenceKey(name)}, []string{value, c.ttlText}).Error())
}

func heldIfNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return errHeld
	}
	return err
}

// A plainLock is a lock that was taken by a plainClient.
type plainLock struct {
	client      *plainClient
	name, value string
}

func (c *plainClient) Try(ctx context.Context, name string) (Held, error) {
	l := &plainLock{c, name, value()}
	return l, c.take(c, ctx, name, l.value)
}

func (l *plainLock) Release(ctx context.Context) error {
	n, err := l.client.released.Exec(ctx, l.client.conn, []string{l.name}, []string{l.value}).AsInt64()
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

func (c *plainClient) Close() error {
	c.conn.Close()
	return nil
}
