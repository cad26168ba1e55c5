package peer

import (
	"context"
	"time"
)

// ping is the floor of every lock with two round trips: it makes only those.
func ping() Peer {
	return Peer{
		Name: "two PINGs", Settings: "rueidis", Floor: true, Store: Redis, Can: Takes,
		Open: onRueidis(func(conn rueidisClient, _ time.Duration) Client { return &pinger{rueidisClient: conn} }),
	}
}

type pinger struct {
	rueidisClient
	noWait
}

func (p *pinger) Try(ctx context.Context, _ string) (Held, error) { return p, p.Release(ctx) }
func (p *pinger) Release(ctx context.Context) error {
	return p.conn.Do(ctx, p.conn.B().Ping().Build()).Error()
}
