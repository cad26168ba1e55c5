package peer

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/redislock"
)

// holdfastDefault is holdfast with its default settings.
func holdfastDefault() Peer {
	return holdfastWith("holdfast", "defaults", "", Takes|Waits|Keeps|Batches|Tells|Spreads)
}

// HoldfastCluster is holdfast with its default settings on a Redis Cluster.
func HoldfastCluster() Peer {
	return Peer{
		Name: "holdfast cluster", Settings: "three masters", Store: Cluster, Can: Spreads,
		Open: func(ctx context.Context, addr string, ttl time.Duration) (Client, error) {
			return openRedislock(ctx, "redis+cluster://"+addr, ttl)
		},
	}
}

// holdfastAlone leaves no gaps for clients of other libraries. It is measured with waiters only,
// because without them there are no gaps.
func holdfastAlone() Peer { return holdfastWith("holdfast alone", "foreign=0", "?foreign=0", Waits) }

// holdfastCohort is holdfast with Options.Cohorts: callers share a place in the queue, and hand
// the lease on. It is measured with waiters only.
func holdfastCohort() Peer {
	p := holdfastWith("holdfast cohort", "Options.Cohorts", "", Waits)
	p.Open = func(ctx context.Context, addr string, ttl time.Duration) (Client, error) {
		engine, err := redislock.Open(ctx, "redis://"+addr)
		if err != nil {
			return nil, err
		}
		return openHoldfastWith(engine, engine.Close, &holdfast.Options{TTL: ttl, Cohorts: true})
	}
	return p
}

// holdfastTold enables the server's notices of deletions. It is measured where they help, and
// where they may cost something.
func holdfastTold() Peer {
	return holdfastWith("holdfast told", "tell_deletions=1", "?tell_deletions=1", Takes|Tells)
}

func holdfastWith(name, settings, options string, can Ability) Peer {
	return Peer{
		Name: name, Settings: settings, Store: Redis, Can: can, Key: sameKey,
		Open: func(ctx context.Context, addr string, ttl time.Duration) (Client, error) {
			return openRedislock(ctx, "redis://"+addr+options, ttl)
		},
	}
}

// openRedislock returns the library on rueidis.
func openRedislock(ctx context.Context, url string, ttl time.Duration) (Client, error) {
	engine, err := redislock.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return openHoldfast(engine, engine.Close, ttl)
}

// holdfastGoRedis is holdfast on the go-redis client of the floors.
func holdfastGoRedis() Peer {
	return Peer{
		Name: "holdfast go-redis", Settings: "goredislock", Store: Redis, Can: Takes | Waits, Key: sameKey,
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			conn := dialGoRedis(addr)
			engine, err := goredislock.New(conn, nil)
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return openHoldfast(engine, func() error { return errors.Join(engine.Close(), conn.Close()) }, ttl)
		},
	}
}

// openHoldfast returns the library on an engine. closed closes the engine.
func openHoldfast(engine driver.Engine, closed func() error, ttl time.Duration) (Client, error) {
	return openHoldfastWith(engine, closed, &holdfast.Options{TTL: ttl})
}

func openHoldfastWith(engine driver.Engine, closed func() error, opts *holdfast.Options) (Client, error) {
	client, err := holdfast.New(engine, opts)
	if err != nil {
		return nil, errors.Join(err, closed())
	}
	return &holdfastClient{client, closed}, nil
}

type holdfastClient struct {
	client *holdfast.Client
	closed func() error // closes the engine
}

// A lease has the size of a pointer, so that its conversion to Held does not allocate.
type lease struct{ *holdfast.Lease }

func (l lease) Lost() <-chan struct{} { return l.Context().Done() }

func (c *holdfastClient) Try(ctx context.Context, name string) (Held, error) {
	l, err := c.client.TryAcquire(ctx, name, nil)
	return lease{l}, err
}

func (c *holdfastClient) Wait(ctx context.Context, name string) (Held, error) {
	l, err := c.client.Acquire(ctx, name, nil)
	return lease{l}, err
}

func (c *holdfastClient) Close() error {
	err := c.client.Close()
	return errors.Join(err, c.closed())
}
