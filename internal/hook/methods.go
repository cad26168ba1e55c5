package hook

import (
	"context"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Acquire implements driver.Engine.
func (e *Engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	return ask(ctx, e, Request{Method: "Acquire"}, req, e.Forward.Acquire)
}

// AcquireAll implements driver.AllAcquirer.
func (e *Engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	return ask(ctx, e, Request{Method: "AcquireAll"}, reqs, e.Forward.AcquireAll)
}

// Extend implements driver.Engine.
func (e *Engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	return batch(ctx, e, Request{Method: "Extend"}, reqs, e.Forward.Extend, func(err error) error { return err })
}

// Release implements driver.Engine.
func (e *Engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return order(ctx, e, Request{Method: "Release"}, req, e.Forward.Release)
}

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	return ask(ctx, e, Request{"Inspect", true}, name, e.Forward.Inspect)
}

// Refresh implements driver.Queuer.
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	failed := func(err error) driver.RefreshReply { return driver.RefreshReply{Err: err} }
	return batch(ctx, e, Request{Method: "Refresh"}, reqs, e.Forward.Refresh, failed)
}

// Downgrade implements driver.Downgrader.
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	return order(ctx, e, Request{Method: "Downgrade"}, req, e.Forward.Downgrade)
}

// Break implements driver.Breaker.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return ask(ctx, e, Request{Method: "Break"}, req, e.Forward.Break)
}

// Breaks implements driver.Breaker.
func (e *Engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	return ask(ctx, e, Request{"Breaks", true}, name, e.Forward.Breaks)
}

// List implements driver.Lister.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return list(ctx, e, Request{"List", true}, prefix, e.Forward.List)
}

// Diagnose implements driver.Diagnoser.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	return ask(ctx, e, Request{"Diagnose", true}, req, e.Forward.Diagnose)
}

// History implements driver.Historian.
func (e *Engine) History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error) {
	return ask(ctx, e, Request{"History", true}, name, e.Forward.History)
}

// Complete implements driver.Recorder.
func (e *Engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return order(ctx, e, Request{Method: "Complete"}, req, e.Forward.Complete)
}

// Recall implements driver.Recorder.
func (e *Engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	return find(ctx, e, Request{"Recall", true}, name, e.Forward.Recall)
}

// Forget implements driver.Recorder.
func (e *Engine) Forget(ctx context.Context, name string) (found bool, err error) {
	return ask(ctx, e, Request{Method: "Forget"}, name, e.Forward.Forget)
}

// DescribeRecord implements driver.Recorder.
func (e *Engine) DescribeRecord(ctx context.Context, name string) (driver.RecordInfo, bool, error) {
	return find(ctx, e, Request{"DescribeRecord", true}, name, e.Forward.DescribeRecord)
}

// ListRecords implements driver.Recorder.
func (e *Engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return list(ctx, e, Request{"ListRecords", true}, prefix, e.Forward.ListRecords)
}

// Deposit implements driver.Vault.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	return order(ctx, e, Request{Method: "Deposit"}, req, e.Forward.Deposit)
}

// Redeem implements driver.Vault.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	return ask(ctx, e, Request{Method: "Redeem"}, req, e.Forward.Redeem)
}

// Peek implements driver.Vault.
func (e *Engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	return ask(ctx, e, Request{"Peek", true}, proof, e.Forward.Peek)
}

// Revoke implements driver.Vault.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return ask(ctx, e, Request{Method: "Revoke"}, digest, e.Forward.Revoke)
}

// Prune implements driver.Vault.
func (e *Engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	err = e.Each(ctx, Request{Method: "Prune"}, func() (err error) {
		deleted, more, err = e.Forward.Prune(ctx, limit)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return deleted, more, nil
}
