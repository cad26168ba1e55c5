package fault

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Severed is an engine that can be cut off from its store for good, as if its
// process died: nobody but its client notices.
type Severed struct {
	inner driver.Engine
	off   atomic.Bool
}

// Sever returns an engine that works on inner until it is cut off. Close does
// not close inner.
func Sever(inner driver.Engine) *Severed { return &Severed{inner: inner} }

// Cut cuts the engine off.
func (s *Severed) Cut() { s.off.Store(true) }

// IsCut reports whether the engine is cut off.
func (s *Severed) IsCut() bool { return s.off.Load() }

var errCut = fmt.Errorf("%w: cut off", driver.ErrUnavailable)

func (s *Severed) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if s.off.Load() {
		return driver.AcquireReply{}, errCut
	}
	return s.inner.Acquire(ctx, req)
}

func (s *Severed) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if !s.off.Load() {
		return s.inner.Extend(ctx, reqs)
	}
	errs := make([]error, len(reqs))
	for i := range errs {
		errs[i] = errCut
	}
	return errs
}

func (s *Severed) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if s.off.Load() {
		return errCut
	}
	return s.inner.Release(ctx, req)
}

func (s *Severed) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	if !s.off.Load() {
		return s.inner.(driver.Queuer).Refresh(ctx, reqs)
	}
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		replies[i].Err = errCut
	}
	return replies
}

func (s *Severed) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	if s.off.Load() {
		return errCut
	}
	return s.inner.(driver.Downgrader).Downgrade(ctx, req)
}

func (s *Severed) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	if s.off.Load() {
		return driver.AllReply{}, errCut
	}
	return s.inner.(driver.AllAcquirer).AcquireAll(ctx, reqs)
}

func (s *Severed) Watch(id driver.LeaseID) driver.Watch { return s.inner.(driver.Queuer).Watch(id) }

func (s *Severed) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	return s.inner.Inspect(ctx, name)
}

func (s *Severed) Capabilities() driver.Capabilities { return s.inner.Capabilities() }

func (s *Severed) Close() error { return nil }
