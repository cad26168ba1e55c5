package driver

import (
	"context"
	"fmt"
	"iter"
)

// Forward is a base for engines that wrap another one, to trace it or to change
// what it does in one place:
//
//	type traced struct{ driver.Forward }
//
//	func (t traced) Release(ctx context.Context, req driver.ReleaseRequest) error {
//		defer trace(ctx, "release")()
//		return t.Forward.Release(ctx, req)
//	}
//
// It has the methods of all optional interfaces and hands every request on. The
// capabilities are those of the wrapped engine less those of Without. A request
// outside them fails with ErrUnsupported and does not reach the wrapped engine.
//
// A wrapper that can do more overrides Capabilities, with the methods that it
// needs for that.
type Forward struct {
	Engine

	// Without are capabilities to switch off. Its MaxTTL has no meaning.
	Without Capabilities
}

func (f Forward) wrapped() Engine { return f.Engine }

// Capabilities implements Engine.
func (f Forward) Capabilities() Capabilities { return f.Engine.Capabilities().without(f.Without) }

// Acquire implements Engine.
func (f Forward) Acquire(ctx context.Context, req AcquireRequest) (AcquireReply, error) {
	if err := CheckSupport(f.Capabilities(), req); err != nil {
		return AcquireReply{}, err
	}
	return f.Engine.Acquire(ctx, req)
}

// behind returns the wrapped engine as I if flag is set, which says that it can
// do what is named.
func behind[I any](f Forward, flag bool, what string) (i I, err error) {
	i, ok := f.Engine.(I)
	if !flag || !ok {
		return i, fmt.Errorf("%s is %w", what, ErrUnsupported)
	}
	return i, nil
}

// pass hands a request on by a method of the optional interface that reach returns.
func pass[I, Req, Reply any](ctx context.Context, reach func() (I, error), method func(I, context.Context, Req) (Reply, error), req Req) (reply Reply, err error) {
	i, err := reach()
	if err != nil {
		return reply, err
	}
	return method(i, ctx, req)
}

// passOrder is pass for methods that answer with an error only.
func passOrder[I, Req any](ctx context.Context, reach func() (I, error), method func(I, context.Context, Req) error, req Req) error {
	i, err := reach()
	if err != nil {
		return err
	}
	return method(i, ctx, req)
}

// Watch implements Queuer. Without a queue there is never a notice.
func (f Forward) Watch(id LeaseID) Watch {
	q, err := f.queuer()
	if err != nil {
		return noWatch{}
	}
	return q.Watch(id)
}

// Refresh implements Queuer.
func (f Forward) Refresh(ctx context.Context, reqs []RefreshRequest) []RefreshReply {
	q, err := f.queuer()
	if err == nil {
		return q.Refresh(ctx, reqs)
	}
	replies := make([]RefreshReply, len(reqs))
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}

func (f Forward) queuer() (Queuer, error) {
	return behind[Queuer](f, f.Capabilities().Queue, "queueing")
}

// A noWatch delivers nothing.
type noWatch struct{}

func (noWatch) C() <-chan Notice { return nil }
func (noWatch) Stop()            {}

// Downgrade implements Downgrader.
func (f Forward) Downgrade(ctx context.Context, req DowngradeRequest) error {
	return passOrder(ctx, f.downgrader, Downgrader.Downgrade, req)
}

func (f Forward) downgrader() (Downgrader, error) {
	return behind[Downgrader](f, f.Capabilities().Shared, "shared mode")
}

// AcquireAll implements AllAcquirer.
func (f Forward) AcquireAll(ctx context.Context, reqs []AcquireRequest) (AllReply, error) {
	c := f.Capabilities()
	a, err := behind[AllAcquirer](f, c.AcquireAll, "taking several locks in one step")
	for i := 0; i < len(reqs) && err == nil; i++ {
		err = CheckSupport(c, reqs[i])
	}
	if err != nil {
		return AllReply{}, err
	}
	return a.AcquireAll(ctx, reqs)
}

// Break implements Breaker.
func (f Forward) Break(ctx context.Context, req BreakRequest) ([]Broken, error) {
	return pass(ctx, f.breaker, Breaker.Break, req)
}

// Breaks implements Breaker.
func (f Forward) Breaks(ctx context.Context, name string) ([]Broken, error) {
	return pass(ctx, f.breaker, Breaker.Breaks, name)
}

func (f Forward) breaker() (Breaker, error) {
	return behind[Breaker](f, f.Capabilities().Break, "breaking locks")
}

// OnLoss implements LossTeller. An engine that hears of no loss never calls told.
func (f Forward) OnLoss(told func(Loss)) (stop func()) {
	t, err := behind[LossTeller](f, f.Capabilities().Losses, "telling of losses")
	if err != nil {
		return func() {}
	}
	return t.OnLoss(told)
}

// List implements Lister.
func (f Forward) List(ctx context.Context, prefix string) iter.Seq2[Lock, error] {
	l, err := behind[Lister](f, f.Capabilities().List, "listing")
	if err != nil {
		return func(yield func(Lock, error) bool) { yield(Lock{}, err) }
	}
	return l.List(ctx, prefix)
}

// Route implements Router. Without routes all names have the same one.
func (f Forward) Route(name string) uint32 {
	r, err := behind[Router](f, f.Capabilities().Routes, "routing")
	if err != nil {
		return 0
	}
	return r.Route(name)
}

// Diagnose implements Diagnoser.
func (f Forward) Diagnose(ctx context.Context, req DiagnoseRequest) (Diagnosis, error) {
	return pass(ctx, f.diagnoser, Diagnoser.Diagnose, req)
}

func (f Forward) diagnoser() (Diagnoser, error) {
	return behind[Diagnoser](f, f.Capabilities().Diagnose, "looking at the store")
}
