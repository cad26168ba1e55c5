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

// A rueidisClient is embedded by the clients of peers on rueidis.
type rueidisClient struct{ conn rueidis.Client }

func (c rueidisClient) Close() error {
	c.conn.Close()
	return nil
}

// onRueidis returns Open of a peer on rueidis. with returns the client.
func onRueidis(with func(conn rueidisClient, ttl time.Duration) Client) opener {
	return func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
		conn, err := dialRueidis(addr)
		if err != nil {
			return nil, err
		}
		return with(rueidisClient{conn}, cmp.Or(ttl, TTL)), nil
	}
}

// plain returns the two floors on a Redis client: the least that a lock can do, without a token,
// renewals and a queue, and the least that a lock with a fencing token can do.
func plain(on string, open func(fences bool) opener) (plain, fence Peer) {
	plain = Peer{Name: "plain " + on, Settings: "SET NX PX", Floor: true, Store: Redis, Can: Takes, Key: sameKey, Open: open(false)}
	fence = plain
	fence.Name, fence.Settings, fence.Open = "fence "+on, "SET NX PX, INCR", open(true)
	return plain, fence
}

func plainRueidis() (plainPeer, fencePeer Peer) {
	return plain("rueidis", func(fences bool) opener {
		return onRueidis(func(conn rueidisClient, ttl time.Duration) Client {
			return &plainClient{
				rueidisClient: conn, fences: fences, ttl: ttl, ttlText: millis(ttl),
				fenced: rueidis.NewLuaScript(fenceText), released: rueidis.NewLuaScript(releaseText),
			}
		})
	})
}

type plainClient struct {
	rueidisClient
	noWait
	fences           bool
	ttl              time.Duration
	ttlText          string
	fenced, released *rueidis.Lua
}

// take takes a plain lock.
func (c *plainClient) take(ctx context.Context, name, value string) error {
	if c.fences {
		return heldIfNil(c.fenced.Exec(ctx, c.conn, []string{name, fenceKey(name)}, []string{value, c.ttlText}).Error())
	}
	return heldIfNil(c.conn.Do(ctx, c.conn.B().Set().Key(name).Value(value).Nx().Px(c.ttl).Build()).Error())
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
	return l, c.take(ctx, name, l.value)
}

func (l *plainLock) Release(ctx context.Context) error {
	n, err := l.client.released.Exec(ctx, l.client.conn, []string{l.name}, []string{l.value}).AsInt64()
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}
