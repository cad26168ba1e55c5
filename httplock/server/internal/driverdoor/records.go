package driverdoor

import (
	"cmp"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// records adds what keeps the results of do-once work, and one-time tokens.
func (d *desk) records(mux *http.ServeMux) {
	handle(d, mux, form.Complete, complete)
	handle(d, mux, form.Recall, recall)
	handle(d, mux, form.Forget, forget)
	handle(d, mux, form.DescribeRecord, describeRecord)
	handle(d, mux, form.Deposit, deposit)
	handle(d, mux, form.Redeem, redeem)
	handle(d, mux, form.Peek, peek)
	handle(d, mux, form.Revoke, revoke)
	handle(d, mux, form.Prune, prune)
}

// recorder returns what keeps records, for a caller who may do what right says.
func (v *visit) recorder(f interface{ Check() error }, right caller.Rights, name string) (driver.Recorder, error) {
	recorder := v.House.Features.Recorder
	if recorder == nil {
		return nil, unsupported("keeping records")
	}
	return recorder, cmp.Or(f.Check(), v.need(right, name), v.granting())
}

func complete(v *visit, f *form.CompleteRequest) (form.Nothing, error) {
	recorder, err := v.recorder(f, caller.Once, f.Name)
	if err != nil {
		return form.Nothing{}, err
	}
	err = recorder.Complete(v.ctx, driver.CompleteRequest{Name: f.Name, LeaseID: f.LeaseID, Record: f.Record, Retention: f.Retention.Duration()})
	return form.Nothing{}, err
}

func recall(v *visit, f *form.Name) (form.Record, error) {
	recorder, err := v.recorder(f, caller.Once, f.Name)
	if err != nil {
		return form.Record{}, err
	}
	r, found, err := recorder.Recall(v.ctx, f.Name)
	return form.Record{Found: found, Data: r.Data, ExpiresIn: form.SpanOf(r.ExpiresIn)}, err
}

func forget(v *visit, f *form.Name) (form.Found, error) {
	recorder, err := v.recorder(f, caller.Once, f.Name)
	if err != nil {
		return form.Found{}, err
	}
	found, err := recorder.Forget(v.ctx, f.Name)
	return form.Found{Found: found}, err
}

func describeRecord(v *visit, f *form.Name) (form.RecordInfo, error) {
	lister := v.House.Features.RecordLister
	if lister == nil {
		return form.RecordInfo{}, unsupported("DescribeRecord")
	}
	if err := cmp.Or(f.Check(), v.need(caller.Read, f.Name), v.stillWanted()); err != nil {
		return form.RecordInfo{}, err
	}
	r, found, err := lister.DescribeRecord(v.ctx, f.Name)
	info := form.RecordInfoOf(r)
	info.Found = found
	return info, err
}

// vault returns what keeps one-time tokens, for a caller who may use them. They have no
// names, and so no prefixes.
func (v *visit) vault(check error, right caller.Rights) (driver.Vault, error) {
	vault := v.House.Features.Vault
	switch {
	case vault == nil:
		return nil, unsupported("keeping one-time tokens")
	case check != nil:
		return nil, check
	case !v.Caller.Rights.Has(right):
		return nil, v.need(right, "")
	}
	return vault, v.granting()
}

func deposit(v *visit, f *form.DepositRequest) (form.Nothing, error) {
	vault, err := v.vault(f.Check(), caller.OneTime)
	if err != nil {
		return form.Nothing{}, err
	}
	return form.Nothing{}, vault.Deposit(v.ctx, driver.DepositRequest{
		Digest: f.Digest, By: f.By, Payload: f.Payload, TTL: f.TTL.Duration(), Memory: f.Memory.Duration(),
	})
}

func redeem(v *visit, f *form.DigestRequest) (form.VaultReply, error) {
	vault, err := v.vault(f.Check(true), caller.OneTime)
	if err != nil {
		return form.VaultReply{}, err
	}
	reply, err := vault.Redeem(v.ctx, driver.RedeemRequest{Digest: f.Digest, By: f.By})
	return form.VaultReplyOf(reply), err
}

func peek(v *visit, f *form.DigestRequest) (form.VaultReply, error) {
	vault, err := v.vault(f.Check(false), caller.OneTime)
	if err != nil {
		return form.VaultReply{}, err
	}
	reply, err := vault.Peek(v.ctx, f.Digest)
	return form.VaultReplyOf(reply), err
}

func revoke(v *visit, f *form.DigestRequest) (form.VaultReply, error) {
	vault, err := v.vault(f.Check(false), caller.OneTime)
	if err != nil {
		return form.VaultReply{}, err
	}
	reply, err := vault.Revoke(v.ctx, f.Digest)
	return form.VaultReplyOf(reply), err
}

func prune(v *visit, f *form.PruneRequest) (form.Pruned, error) {
	vault, err := v.vault(f.Check(), caller.Admin)
	if err != nil {
		return form.Pruned{}, err
	}
	deleted, more, err := vault.Prune(v.ctx, f.Limit)
	return form.Pruned{Deleted: deleted, More: more}, err
}
