package peer

import (
	"context"
	"time"
)

// Baton is the floor of hand-offs: a list with one element, which BLPOP takes. RPUSH gives it to
// the client that has waited longest. Its holder must not die.
func Baton() Peer {
	return Peer{
		Name: "baton", Settings: "BLPOP, RPUSH; rueidis", Floor: true, Store: Redis, Can: Waits,
		Open: onRueidis(func(conn rueidisClient, _ time.Duration) Client { return &runners{conn} }),
	}
}

// runners are the clients of batons.
type runners struct{ rueidisClient }

// Prepare makes the baton of a name.
func (r *runners) Prepare(ctx context.Context, name string) error {
	for _, resp := range r.conn.DoMulti(ctx, r.conn.B().Del().Key(name).Build(), r.conn.B().Rpush().Key(name).Element("x").Build()) {
		if err := resp.Error(); err != nil {
			return err
		}
	}
	return nil
}

// A carried is a baton that a client holds.
type carried struct {
	runners *runners
	name    string
}

func (r *runners) Try(ctx context.Context, name string) (Held, error) { return r.Wait(ctx, name) }

func (r *runners) Wait(ctx context.Context, name string) (Held, error) {
	return &carried{r, name}, r.conn.Do(ctx, r.conn.B().Blpop().Key(name).Timeout(0).Build()).Error()
}

func (b *carried) Release(ctx context.Context) error {
	conn := b.runners.conn
	return conn.Do(ctx, conn.B().Rpush().Key(b.name).Element("x").Build()).Error()
}
