package driver

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/holdfast-locks/holdfast/lockinfo"
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
// It has the methods of all optional interfaces and passes every request on. Its
// capabilities are the wrapped engine's without those in Without. A request
// outside them fails with ErrUnsupported and does not reach the wrapped engine.
//
// A wrapper that can do more overrides Capabilities, and the methods that its flags
// need.
type Forward struct {
	Engine

	// Without are capabilities to switch off. Its MaxTTL and MaxExtend have no meaning.
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

// features returns the wrapped engine's features without those in Without. It ignores the error
// of resolve: New has refused an engine that lacks the methods of its flags.
func (f Forward) features() Features {
	left, _ := resolve(f.Engine, f.Capabilities())
	return left
}

// pass passes a request on to a method of an optional interface. to is nil unless the flag is
// set.
func pass[I, Req, Reply any](ctx context.Context, to I, method func(I, context.Context, Req) (Reply, error), req Req) (reply Reply, err error) {
	if any(to) == nil {
		return reply, unsupported[I]()
	}
	return method(to, ctx, req)
}

// passOrder is pass for methods that return only an error.
func passOrder[I, Req any](ctx context.Context, to I, method func(I, context.Context, Req) error, req Req) error {
	if any(to) == nil {
		return unsupported[I]()
	}
	return method(to, ctx, req)
}

// unsupported returns the error of a method of I whose flag is not set.
func unsupported[I any]() error {
	return fmt.Errorf("%v is %w", reflect.TypeFor[I](), ErrUnsupported)
}

// Watch implements Queuer. Without a queue there is never a notice.
func (f Forward) Watch(id lockinfo.LeaseID) Watch {
	if q := f.features().Queuer; q != nil {
		return q.Watch(id)
	}
	return noWatch{}
}

// Refresh implements Queuer.
func (f Forward) Refresh(ctx context.Context, reqs []RefreshRequest) []RefreshReply {
	if q := f.features().Queuer; q != nil {
		return q.Refresh(ctx, reqs)
	}
	return slices.Repeat([]RefreshReply{{Err: unsupported[Queuer]()}}, len(reqs))
}

// A noWatch never delivers a notice.
type noWatch struct{}

func (noWatch) C() <-chan Notice { return nil }
func (noWatch) Stop()            {}

// Downgrade implements Downgrader.
func (f Forward) Downgrade(ctx context.Context, req DowngradeRequest) error {
	return passOrder(ctx, f.features().Downgrader, Downgrader.Downgrade, req)
}

// AcquireAll implements AllAcquirer.
func (f Forward) AcquireAll(ctx context.Context, reqs []AcquireRequest) (AllReply, error) {
	left := f.features()
	for i := 0; i < len(reqs) && left.AcquireAll; i++ {
		if err := CheckSupport(left.Capabilities, reqs[i]); err != nil {
			return AllReply{}, err
		}
	}
	return pass(ctx, left.AllAcquirer, AllAcquirer.AcquireAll, reqs)
}

// Break implements Breaker.
func (f Forward) Break(ctx context.Context, req BreakRequest) ([]lockinfo.Broken, error) {
	return pass(ctx, f.features().Breaker, Breaker.Break, req)
}

// Breaks implements Breaker.
func (f Forward) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	return pass(ctx, f.features().Breaker, Breaker.Breaks, name)
}

// OnLoss implements LossTeller. An engine without Capabilities.Losses never calls
// listener.
func (f Forward) OnLoss(listener func(Loss)) (stop func()) {
	if t := f.features().LossTeller; t != nil {
		return t.OnLoss(listener)
	}
	return func() {}
}

// List implements Lister.
func (f Forward) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	if l := f.features().Lister; l != nil {
		return l.List(ctx, prefix)
	}
	return Listed(func() ([]lockinfo.LockState, error) { return nil, unsupported[Lister]() })
}

// Route implements Router. Without Capabilities.Routes all names have the same
// route.
func (f Forward) Route(name string) uint32 {
	if r := f.features().Router; r != nil {
		return r.Route(name)
	}
	return 0
}

// Diagnose implements Diagnoser.
func (f Forward) Diagnose(ctx context.Context, req DiagnoseRequest) (Diagnosis, error) {
	return pass(ctx, f.features().Diagnoser, Diagnoser.Diagnose, req)
}

// History implements Historian.
func (f Forward) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	return pass(ctx, f.features().Historian, Historian.History, name)
}

// OnEvent implements Historian. Without history listener is never called.
func (f Forward) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if h := f.features().Historian; h != nil {
		return h.OnEvent(listener)
	}
	return func() {}
}

// Complete implements Recorder.
func (f Forward) Complete(ctx context.Context, req CompleteRequest) error {
	return passOrder(ctx, f.features().Recorder, Recorder.Complete, req)
}

// Recall implements Recorder.
func (f Forward) Recall(ctx context.Context, name string) (Record, bool, error) {
	if r := f.features().Recorder; r != nil {
		return r.Recall(ctx, name)
	}
	return Record{}, false, unsupported[Recorder]()
}

// Forget implements Recorder.
func (f Forward) Forget(ctx context.Context, name string) (found bool, err error) {
	return pass(ctx, f.features().Recorder, Recorder.Forget, name)
}

// DescribeRecord implements Recorder.
func (f Forward) DescribeRecord(ctx context.Context, name string) (RecordInfo, bool, error) {
	if r := f.features().Recorder; r != nil {
		return r.DescribeRecord(ctx, name)
	}
	return RecordInfo{}, false, unsupported[Recorder]()
}

// ListRecords implements Recorder.
func (f Forward) ListRecords(ctx context.Context, prefix string) iter.Seq2[RecordInfo, error] {
	if r := f.features().Recorder; r != nil {
		return r.ListRecords(ctx, prefix)
	}
	return Listed(func() ([]RecordInfo, error) { return nil, unsupported[Recorder]() })
}

// Deposit implements Vault.
func (f Forward) Deposit(ctx context.Context, req DepositRequest) error {
	return passOrder(ctx, f.features().Vault, Vault.Deposit, req)
}

// Redeem implements Vault.
func (f Forward) Redeem(ctx context.Context, req RedeemRequest) (VaultReply, error) {
	return pass(ctx, f.features().Vault, Vault.Redeem, req)
}

// Peek implements Vault.
func (f Forward) Peek(ctx context.Context, proof Proof) (VaultReply, error) {
	return pass(ctx, f.features().Vault, Vault.Peek, proof)
}

// Revoke implements Vault.
func (f Forward) Revoke(ctx context.Context, digest Digest) (VaultReply, error) {
	return pass(ctx, f.features().Vault, Vault.Revoke, digest)
}

// Prune implements Vault.
func (f Forward) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	if v := f.features().Vault; v != nil {
		return v.Prune(ctx, limit)
	}
	return 0, false, unsupported[Vault]()
}

// SelfPruning implements Vault.
func (f Forward) SelfPruning() bool {
	v := f.features().Vault
	return v != nil && v.SelfPruning()
}
