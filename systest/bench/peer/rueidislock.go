package peer

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockBest has the best settings for one server: one key, no messages about its own
// writes, and a second to wait for a reply, which a busy server may need.
func rueidislockBest() Peer {
	return rueidislockWith("rueidislock", "1 key, NOLOOP", rueidislock.LockerOption{
		KeyMajority: 1, NoLoopTracking: true, TryNextAfter: time.Second,
	})
}

// rueidislockDefault takes two of three keys.
func rueidislockDefault() Peer {
	p := rueidislockWith("rueidislock default", "defaults, 3 keys", rueidislock.LockerOption{})
	p.Key = nil // a majority of three keys
	return asDefault(p)
}

func rueidislockWith(name, settings string, opts rueidislock.LockerOption) Peer {
	return Peer{
		Name: name, Settings: settings, Store: Redis, Can: Takes | Waits | Keeps | Tells,
		Key: func(name string) string { return "rueidislock:0:" + name },
		Open: func(_ context.Context, addr string, ttl time.Duration) (Client, error) {
			opts := opts
			opts.KeyValidity = ttl // zero is the default
			opts.ClientOption = rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
			locker, err := rueidislock.NewLocker(opts)
			if err != nil {
				return nil, err
			}
			return rueidisLocker{locker}, nil
		},
	}
}

type rueidisLocker struct{ locker rueidislock.Locker }

// A cancelable lock is held until its context is canceled.
type cancelable struct {
	context.Context
	cancel context.CancelFunc
}

func (c *cancelable) Release(context.Context) error {
	c.cancel()
	return nil
}

func (c *cancelable) Lost() <-chan struct{} { return c.Done() }

func (l rueidisLocker) Try(ctx context.Context, name string) (Held, error) {
	ctx, cancel, err := l.locker.TryWithContext(ctx, name)
	return &cancelable{ctx, cancel}, err
}

// Wait gives up when ctx ends. The lock lasts longer, unlike a lock that is taken under ctx.
func (l rueidisLocker) Wait(ctx context.Context, name string) (Held, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, end)
	held, cancel, err := l.locker.WithContext(life, name)
	if err == nil && !keep() {
		cancel()
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return &cancelable{held, cancel}, nil
}

func (l rueidisLocker) Close() error {
	l.locker.Close()
	return nil
}
