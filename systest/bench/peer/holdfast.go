package peer

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/redislock"
)

// holdfastDefault is holdfast with its default settings.
func holdfastDefault() Peer {
	return onRedis("holdfast", "defaults", Takes|Waits|Keeps|Batches|Tells|Spreads, "", holdfast.Options{})
}

// HoldfastCluster is holdfast with its default settings on a Redis Cluster.
func HoldfastCluster() Peer {
	return holdfastOn("holdfast cluster", "three masters", Cluster, Spreads, holdfast.Options{}, func(ctx context.Context, addr string) (driver.Engine, error) {
		return redislock.Open(ctx, "redis+cluster://"+addr)
	})
}

// holdfastAlone leaves no gaps for clients of other libraries. It is measured with waiters only,
// because without them there are no gaps.
func holdfastAlone() Peer {
	return onRedis("holdfast alone", "foreign=0", Waits, "?foreign=0", holdfast.Options{})
}

// holdfastCohort is holdfast with Options.Cohorts: callers share a place in the queue, and hand
// the lease on. It is measured with waiters only.
func holdfastCohort() Peer {
	return onRedis("holdfast cohort", "Options.Cohorts", Waits, "", holdfast.Options{Cohorts: true})
}

// holdfastTold enables the server's notices of deletions. It is measured where they help, and
// where they may cost something.
func holdfastTold() Peer {
	return onRedis("holdfast told", "tell_deletions=1", Takes|Tells, "?tell_deletions=1", holdfast.Options{})
}

// onRedis returns holdfast on rueidis. query has the options in the store's URL.
func onRedis(name, settings string, can Ability, query string, opts holdfast.Options) Peer {
	p := holdfastOn(name, settings, Redis, can, opts, func(ctx context.Context, addr string) (driver.Engine, error) {
		return redislock.Open(ctx, "redis://"+addr+query)
	})
	p.Key = sameKey
	return p
}

// holdfastGoRedis is holdfast on the go-redis client of the floors.
func holdfastGoRedis() Peer {
	p := holdfastOn("holdfast go-redis", "goredislock", Redis, Takes|Waits, holdfast.Options{}, func(_ context.Context, addr string) (driver.Engine, error) {
		conn := dialGoRedis(addr)
		engine, err := goredislock.New(conn, nil)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return &ownConn{engine, conn}, nil
	})
	p.Key = sameKey
	return p
}

// An ownConn is an engine that owns its go-redis client.
type ownConn struct {
	*goredislock.Engine
	conn io.Closer
}

func (e *ownConn) Close() error { return errors.Join(e.Engine.Close(), e.conn.Close()) }

// holdfastOn returns holdfast on the engine that open returns.
func holdfastOn(name, settings string, store Store, can Ability, opts holdfast.Options, open func(ctx context.Context, addr string) (driver.Engine, error)) Peer {
	return Peer{
		Name: name, Settings: settings, Store: store, Can: can,
		Open: func(ctx context.Context, addr string, ttl time.Duration) (Client, error) {
			engine, err := open(ctx, addr)
			if err != nil {
				return nil, err
			}
			opts := opts
			opts.TTL = ttl
			client, err := holdfast.New(engine, &opts)
			if err != nil {
				return nil, errors.Join(err, engine.Close())
			}
			return &holdfastClient{client}, nil
		},
	}
}

type holdfastClient struct{ client *holdfast.Client }

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

func (c *holdfastClient) Close() error { return c.client.Close() }
