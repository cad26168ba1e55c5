package rediscore

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
)

// again sends a request that ends something once more if its connection was
// given up. A repeat that fails shows nothing about the first request,
// and one that finds no lease does not tell who ended it: the outcome then
// stays unknown.
func again(ctx context.Context, request func() error) error {
	err := request()
	if !errors.Is(err, ErrGivenUp) || ctx.Err() != nil {
		return err
	}
	if request() == nil {
		return nil
	}
	return err
}

// Extend implements driver.Engine.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	e.tracker.renewing(reqs)
	errs := e.extendAll(ctx, reqs)
	e.tracker.renewed(reqs, errs)
	return errs
}

// Release implements driver.Engine.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return again(ctx, func() error { return e.release(ctx, req) })
}

// Downgrade implements driver.Downgrader.
func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return again(ctx, func() error { return e.downgrade(ctx, req) })
}

// Complete implements driver.Recorder.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return again(ctx, func() error { return e.complete(ctx, req) })
}
