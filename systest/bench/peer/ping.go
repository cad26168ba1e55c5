package peer

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// ping is the floor of every lock with two round trips: it makes only those.
func ping() Peer {
	return Peer{
		Name: "two PINGs", Settings: "rueidis", Floor: true, Store: Redis, Can: Takes,
		Open: func(_ context.Context, addr string, _ time.Duration) (Client, error) {
			conn, err := dialRueidis(addr)
			if err != nil {
				return nil, err
			}
			return &pinger{conn: conn}, nil
		},
	}
}

type pinger struct {
	noWait
	conn rueidis.Client
}

func (p *pinger) Try(ctx context.Context, _ string) (Held, error) { return p, p.Release(ctx) }
func (p *pinger) Release(ctx context.Context) error {
	return p.conn.Do(ctx, p.conn.B().Ping().Build()).Error()
}

func (p *pinger) Close() error {
	p.conn.Close()
	return nil
}
