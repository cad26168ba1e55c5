package holdfasttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
)

// An engine is the connection of one process to the kit's store.
type engine struct {
	hook.Engine
	kit    *Kit
	closed atomic.Bool
}

func newEngine(k *Kit) *engine {
	e := &engine{kit: k}
	e.Engine = hook.Engine{Forward: driver.Forward{Engine: k.store}, Each: e.each}
	return e
}

// each carries out a request with the present trouble of the kit.
func (e *engine) each(ctx context.Context, _ hook.Request, send func() error) error {
	switch {
	case e.closed.Load():
		return driver.ErrClosed
	case time.Now().Before(e.kit.made):
		// Bubbles begin in the past. In this bubble a goroutine that waits for the kit would
		// never count as blocked, so no time would pass.
		return errElsewhen
	}
	defer e.kit.change()
	return e.kit.suffer(ctx, send)
}

var errElsewhen = fmt.Errorf("%w kit: it was made outside of this bubble of testing/synctest: call holdfasttest.New with the T of the bubble", driver.ErrInvalid)

// Acquire notes the request for a lease, and its outcome.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	e.kit.asked(e, req)
	reply, err := e.Engine.Acquire(ctx, req)
	if err == nil && reply.Outcome == driver.Granted {
		e.kit.has(req.LeaseID, e)
	}
	return reply, err
}

// AcquireAll notes the requests for leases, and their outcome.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	e.kit.asked(e, reqs...)
	reply, err := e.Engine.AcquireAll(ctx, reqs)
	for i := 0; i < len(reqs) && err == nil && reply.Outcome == driver.Granted; i++ {
		e.kit.has(reqs[i].LeaseID, e)
	}
	return reply, err
}

// Extend notes that the client of e has a lease, which it may have adopted or got in a
// hand-over.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := e.Engine.Extend(ctx, reqs)
	for i, err := range errs {
		if err == nil {
			e.kit.has(reqs[i].LeaseID, e)
		}
	}
	return errs
}

// Release notes that a holder releases its lease, whether or not the request reaches the
// store.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	e.kit.gaveBack(req.LeaseID, req.Cancel)
	return e.Engine.Release(ctx, req)
}

// Complete notes the release of the lease of do-once work, unless the request keeps it.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	if !req.Keep {
		e.kit.gaveBack(req.LeaseID, false)
	}
	return e.Engine.Complete(ctx, req)
}

// OnLoss delivers the losses that Lose causes as well.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) {
	stopStore, stopLost := e.Engine.OnLoss(listener), e.kit.losses.OnLoss(listener)
	return func() { stopStore(); stopLost() }
}

// Close closes e only, and not the store.
func (e *engine) Close() error {
	e.closed.Store(true)
	return nil
}
