package quorumsim

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// A balanced is an engine behind a load balancer: two engines on the same members, each on a host
// of its own. Each request goes to either of them, including repeats under the same lease ID. Its
// tokens follow the first host's clock.
type balanced struct {
	*quorumlock.Engine // the first engine
	second             *quorumlock.Engine
	other              func() bool // whether the second engine gets the request
	ahead              uint64      // microseconds by which the second host's clock is ahead of the first's; it wraps
}

// there converts a token of the client to the second engine's clock.
func (b *balanced) there(token uint64) uint64 { return moved(token, -b.ahead) }

func (b *balanced) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if !b.other() {
		return b.Engine.Acquire(ctx, req)
	}
	req.MinToken = b.there(req.MinToken)
	reply, err := b.second.Acquire(ctx, req)
	reply.Token = moved(reply.Token, b.ahead)
	return reply, err
}

func (b *balanced) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if !b.other() {
		return b.Engine.Extend(ctx, reqs)
	}
	there := make([]driver.ExtendRequest, len(reqs))
	for i, req := range reqs {
		req.Token = b.there(req.Token)
		there[i] = req
	}
	return b.second.Extend(ctx, there)
}

func (b *balanced) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if !b.other() {
		return b.Engine.Release(ctx, req)
	}
	return b.second.Release(ctx, req)
}

func (b *balanced) Close() error { return errors.Join(b.Engine.Close(), b.second.Close()) }
