package httplock

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
)

// optional is call for a method that needs a flag.
func optional[Reply any](ctx context.Context, e *Engine, flag bool, method string, req any) (Reply, error) {
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
func (e *Engine) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	f := form.Renewals{Requests: make([]form.Renewal, len(reqs))}
	for i, r := range reqs {
		f.Requests[i] = form.Renewal{Name: r.Name, LeaseID: r.LeaseID, TTL: form.SpanOf(r.WaiterTTL)}
	}
	reply, err := optional[form.Refreshed](ctx, e, e.capable.Queue, form.Refresh, f)
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
func (e *Engine) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.Shared, form.Downgrade, form.End{Name: req.Name, LeaseID: req.LeaseID})
	return err
}

// AcquireAll implements driver.AllAcquirer.
func (e *Engine) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	f := form.Requests{Requests: make([]form.Request, len(reqs))}
	for i, r := range reqs {
		if err := driver.CheckSupport(e.capable, r); err != nil && e.capable.AcquireAll {
			return driver.AllReply{Refused: i}, err
		}
		f.Requests[i] = form.RequestOf(r)
	}
	reply, err := optional[form.AllReply](ctx, e, e.capable.AcquireAll, form.AcquireAll, f)
	if err == nil {
		e.notices.granted(len(reply.Tokens))
	}
	return reply.Driver(), err
}

// Break implements driver.Breaker.
func (e *Engine) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	f, err := optional[form.Records](ctx, e, e.capable.Break, form.Break, form.BreakRequest{
		ID: req.ID, Name: req.Name, Token: req.Token, Older: req.Older, Closed: req.Closed, Author: req.Author, Reason: req.Reason,
	})
	return f.Driver(), err
}

// Breaks implements driver.Breaker.
func (e *Engine) Breaks(ctx context.Context, name string) ([]driver.Broken, error) {
	f, err := optional[form.Records](ctx, e, e.capable.Break, form.Breaks, form.Name{Name: name})
	return f.Driver(), err
}

// Diagnose implements driver.Diagnoser. The server looks at its store; the URL of the
// request, which is that of the server, says nothing to it.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	f, err := optional[form.Diagnosis](ctx, e, e.capable.Diagnose, form.Diagnose, form.DiagnoseRequest{TTL: form.SpanOf(req.TTL)})
	return f.Driver(), err
}

// Complete implements driver.Recorder.
func (e *Engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.Records, form.Complete, form.CompleteRequest{
		Name: req.Name, LeaseID: req.LeaseID, Record: req.Record, Retention: form.SpanOf(req.Retention),
	})
	if err == nil {
		e.notices.ended()
	}
	return err
}

// Recall implements driver.Recorder.
func (e *Engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	f, err := optional[form.Record](ctx, e, e.capable.Records, form.Recall, form.Name{Name: name})
	return driver.Record{Data: f.Data, ExpiresIn: f.ExpiresIn.Duration()}, f.Found, err
}

// Forget implements driver.Recorder.
func (e *Engine) Forget(ctx context.Context, name string) (bool, error) {
	f, err := optional[form.Found](ctx, e, e.capable.Records, form.Forget, form.Name{Name: name})
	return f.Found, err
}

// DescribeRecord implements driver.RecordLister.
func (e *Engine) DescribeRecord(ctx context.Context, name string) (driver.RecordInfo, bool, error) {
	f, err := optional[form.RecordInfo](ctx, e, e.capable.ListRecords, form.DescribeRecord, form.Name{Name: name})
	return f.Driver(), f.Found, err
}

// Deposit implements driver.Vault.
func (e *Engine) Deposit(ctx context.Context, req driver.DepositRequest) error {
	_, err := optional[form.Nothing](ctx, e, e.capable.OneTime, form.Deposit, form.DepositRequest{
		Digest: req.Digest, By: req.By, Payload: req.Payload, TTL: form.SpanOf(req.TTL), Memory: form.SpanOf(req.Memory),
	})
	return err
}

// Redeem implements driver.Vault.
func (e *Engine) Redeem(ctx context.Context, req driver.RedeemRequest) (driver.VaultReply, error) {
	f, err := optional[form.VaultReply](ctx, e, e.capable.OneTime, form.Redeem, form.DigestRequest{Digest: req.Digest, By: req.By})
	return f.Driver(), err
}

// Peek implements driver.Vault.
func (e *Engine) Peek(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	f, err := optional[form.VaultReply](ctx, e, e.capable.OneTime, form.Peek, form.DigestRequest{Digest: digest})
	return f.Driver(), err
}

// Revoke implements driver.Vault.
func (e *Engine) Revoke(ctx context.Context, digest driver.Digest) (driver.VaultReply, error) {
	f, err := optional[form.VaultReply](ctx, e, e.capable.OneTime, form.Revoke, form.DigestRequest{Digest: digest})
	return f.Driver(), err
}

// Prune implements driver.Vault. Only an admin of the servers may do that.
func (e *Engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	f, err := optional[form.Pruned](ctx, e, e.capable.OneTime, form.Prune, form.PruneRequest{Limit: limit})
	return f.Deleted, f.More, err
}

// SelfPruning implements driver.Vault.
func (e *Engine) SelfPruning() bool { return e.capable.OneTime && e.selfPruning }
