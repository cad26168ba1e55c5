package httplock

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// optional does as call for a method that the server may lack. flag reports that it has it.
func optional[Reply any](ctx context.Context, e *engine, flag bool, method string, req any) (Reply, error) {
	if !flag {
		return *new(Reply), unsupported(method)
	}
	reply, _, err := call[Reply](ctx, e, method, req)
	return reply, err
}

func unsupported(method string) error {
	return fmt.Errorf("%s is %w: the server's store cannot do it", method, driver.ErrUnsupported)
}

// Refresh implements driver.Queuer.
func (e *engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	reply, err := optional[form.Refreshed](ctx, e, e.capable.Queue, form.Refresh, form.Batch[driver.RefreshRequest]{Requests: reqs})
	if err == nil && len(reply.Replies) != len(reqs) {
		err = errShort
	}
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		if replies[i].Err = err; err == nil {
			replies[i] = reply.Replies[i].Driver()
			e.routes.learnEach(reqs[i].Name, reply.Routes, i)
		}
	}
	return replies
}

// Downgrade implements driver.Downgrader.
func (e *engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.Shared, form.Downgrade, req)
	return err
}

// AcquireAll implements driver.AllAcquirer.
func (e *engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	reply, err := optional[driver.AllReply](ctx, e, e.capable.AcquireAll, form.AcquireAll, form.Batch[driver.AcquireRequest]{Requests: reqs})
	if err == nil {
		e.notices.granted(len(reply.Tokens))
	}
	return reply, err
}

// Break implements driver.Breaker.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	f, err := optional[form.Records](ctx, e, e.capable.Break, form.Break, req)
	return f.Breaks(), err
}

// Breaks implements driver.Breaker.
func (e *engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	f, err := optional[form.Records](ctx, e, e.capable.Break, form.Breaks, form.Name{Name: name})
	return f.Breaks(), err
}

// Diagnose implements driver.Diagnoser. The server diagnoses its store. The URL of the request
// is the server's, and is not sent.
func (e *engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	f, err := optional[form.Diagnosis](ctx, e, e.capable.Diagnose, form.Diagnose, req)
	return f.Driver(), err
}

// Complete implements driver.Recorder.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.Records, form.Complete, req)
	if err == nil && !req.Keep {
		e.notices.losses.Ended()
	}
	return err
}

// Recall implements driver.Recorder.
func (e *engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	f, err := optional[form.Record](ctx, e, e.capable.Records, form.Recall, form.Name{Name: name})
	return f.Record, f.Found.Found, err
}

// Forget implements driver.Recorder.
func (e *engine) Forget(ctx context.Context, name string) (bool, error) {
	f, err := optional[form.Found](ctx, e, e.capable.Records, form.Forget, form.Name{Name: name})
	return f.Found, err
}

// DescribeRecord implements driver.Recorder.
func (e *engine) DescribeRecord(ctx context.Context, name string) (driver.RecordInfo, bool, error) {
	f, err := optional[form.RecordInfo](ctx, e, e.capable.Records, form.DescribeRecord, form.Name{Name: name})
	return f.RecordInfo, f.Found.Found, err
}

// Deposit implements driver.Vault.
func (e *engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.OneTime, form.Deposit, req)
	return err
}

// Redeem implements driver.Vault.
func (e *engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	return optional[driver.VaultReply](ctx, e, e.capable.OneTime, form.Redeem, req)
}

// Peek implements driver.Vault.
func (e *engine) Peek(ctx context.Context, proof driver.Proof) (driver.VaultReply, error) {
	return optional[driver.VaultReply](ctx, e, e.capable.OneTime, form.Peek, form.Proof{Proof: proof})
}

// Revoke implements driver.Vault.
func (e *engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	return optional[driver.VaultReply](ctx, e, e.capable.OneTime, form.Revoke, form.Digest{Digest: digest})
}

// Prune implements driver.Vault. Only an admin of the server may do that.
func (e *engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	f, err := optional[form.Pruned](ctx, e, e.capable.OneTime, form.Prune, form.Limit{Limit: limit})
	return f.Deleted, f.More, err
}

// SelfPruning implements driver.Vault.
func (e *engine) SelfPruning() bool { return e.capable.OneTime && e.selfPruning }
