package fault

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Severed is an engine that can be cut off from its store for good, as if its
// process died: nobody but its client notices. Whoever only looks at the store
// is still answered.
type Severed struct {
	driver.Forward
	off atomic.Bool
}

// Sever returns an engine that works on inner until it is cut off. Close does
// not close inner.
func Sever(inner driver.Engine) *Severed {
	return &Severed{Forward: driver.Forward{Engine: inner}}
}

// Cut cuts the engine off.
func (s *Severed) Cut() { s.off.Store(true) }

// IsCut reports whether the engine is cut off.
func (s *Severed) IsCut() bool { return s.off.Load() }

var errCut = fmt.Errorf("%w: cut off", driver.ErrUnavailable)

// ask sends a request unless the engine is cut off.
func ask[Req, Reply any](ctx context.Context, s *Severed, req Req, send func(context.Context, Req) (Reply, error)) (reply Reply, err error) {
	if s.off.Load() {
		return reply, errCut
	}
	return send(ctx, req)
}

// order is ask for requests that are answered with an error only.
func order[Req any](ctx context.Context, s *Severed, req Req, send func(context.Context, Req) error) error {
	if s.off.Load() {
		return errCut
	}
	return send(ctx, req)
}

func (s *Severed) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	return ask(ctx, s, req, s.Forward.Acquire)
}

func (s *Severed) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	return ask(ctx, s, reqs, s.Forward.AcquireAll)
}

func (s *Severed) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if !s.off.Load() {
		return s.Forward.Extend(ctx, reqs)
	}
	errs := make([]error, len(reqs))
	for i := range errs {
		errs[i] = errCut
	}
	return errs
}

func (s *Severed) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return order(ctx, s, req, s.Forward.Release)
}

func (s *Severed) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return order(ctx, s, req, s.Forward.Downgrade)
}

func (s *Severed) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	if !s.off.Load() {
		return s.Forward.Refresh(ctx, reqs)
	}
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		replies[i].Err = errCut
	}
	return replies
}

func (s *Severed) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	return ask(ctx, s, req, s.Forward.Break)
}

func (s *Severed) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return order(ctx, s, req, s.Forward.Complete)
}

func (s *Severed) Forget(ctx context.Context, name string) (bool, error) {
	return ask(ctx, s, name, s.Forward.Forget)
}

func (s *Severed) Deposit(ctx context.Context, req driver.DepositRequest) error {
	return order(ctx, s, req, s.Forward.Deposit)
}

func (s *Severed) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	return ask(ctx, s, req, s.Forward.Redeem)
}

func (s *Severed) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return ask(ctx, s, digest, s.Forward.Revoke)
}

func (s *Severed) Close() error { return nil }
