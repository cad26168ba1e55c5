package peer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// batch is how many locks the reference renews in one script.
const batch = 500

// reference is the floor of held leases: plain locks whose values begin with the client's own
// text. One goroutine renews them in batches, each third of the TTL.
func reference() Peer {
	return Peer{
		Name: "batches of 500", Settings: "SET NX PX; rueidis", Floor: true, Store: Redis, Can: Takes | Keeps | Batches, Key: sameKey,
		Open: onRueidis(func(conn rueidisClient, ttl time.Duration) Client {
			ctx, stop := context.WithCancel(context.Background())
			c := &referenceClient{
				rueidisClient: conn, ttl: ttl, value: value(), stop: stop, names: map[string]struct{}{},
				renewed: rueidis.NewLuaScript(renewText), released: rueidis.NewLuaScript(releaseText),
			}
			c.keeper.Go(func() { c.keep(ctx) })
			return c
		}),
	}
}

type referenceClient struct {
	rueidisClient
	noWait
	ttl               time.Duration
	value             string // the beginning of the values of all its locks
	renewed, released *rueidis.Lua
	stop              context.CancelFunc
	keeper            sync.WaitGroup

	mu    sync.Mutex
	names map[string]struct{}
}

// A kept is a lock of a referenceClient.
type kept struct {
	client      *referenceClient
	name, value string
}

func (c *referenceClient) Try(ctx context.Context, name string) (Held, error) {
	own := c.value + " " + name
	cmd := c.conn.B().Set().Key(name).Value(own).Nx().Px(c.ttl).Build()
	if err := heldIfNil(c.conn.Do(ctx, cmd).Error()); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name] = struct{}{}
	return kept{c, name, own}, nil
}

func (k kept) Release(ctx context.Context) error {
	k.client.mu.Lock()
	delete(k.client.names, k.name)
	k.client.mu.Unlock()
	return k.client.released.Exec(ctx, k.client.conn, []string{k.name}, []string{k.value}).Error()
}

// keep renews all locks until ctx ends.
func (c *referenceClient) keep(ctx context.Context) {
	ticks := time.NewTicker(c.ttl / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		for names := range slices.Chunk(c.held(), batch) {
			_ = c.renewed.Exec(ctx, c.conn, names, []string{c.value, millis(c.ttl)}).Error() // the next tick repeats it
		}
	}
}

func (c *referenceClient) held() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.names))
}

func (c *referenceClient) Close() error {
	c.stop()
	c.keeper.Wait()
	return c.rueidisClient.Close()
}
