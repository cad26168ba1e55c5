package driverdoor

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
)

// records adds the methods for the results of do-once work, and for one-time tokens.
func (d *desk) records() {
	recorder := d.house.Features.Recorder
	can := recorder != nil
	handleNamed(d, form.Complete, caller.Once, can, func(v *visit, req *driver.CompleteRequest) (form.Nothing, error) {
		if err := v.House.Limits.Keep(v.Caller, limit.Record(req.Name), len(req.Record), req.Retention, true); err != nil {
			return form.Nothing{}, err
		}
		err := recorder.Complete(v.ctx, *req)
		if err == nil {
			v.House.Limits.Ended(v.Caller, limit.Lease(req.Name, req.LeaseID))
		}
		return form.Nothing{}, err
	})
	handleNamed(d, form.Recall, caller.Once, can, func(v *visit, req *form.Name) (reply form.Record, err error) {
		reply.Record, reply.Found.Found, err = recorder.Recall(v.ctx, req.Name)
		return reply, err
	})
	handleNamed(d, form.Forget, caller.Once, can, func(v *visit, req *form.Name) (reply form.Found, err error) {
		reply.Found, err = recorder.Forget(v.ctx, req.Name)
		if err == nil {
			v.House.Limits.Dropped(limit.Record(req.Name))
		}
		return reply, err
	})
	handleNamed(d, form.DescribeRecord, caller.Read, can, func(v *visit, req *form.Name) (reply form.RecordInfo, err error) {
		reply.RecordInfo, reply.Found.Found, err = recorder.DescribeRecord(v.ctx, req.Name)
		return reply, err
	})
	d.vault()
}

// vault adds the methods for one-time tokens. Tokens have no names: the rights of a caller
// hold for all of them.
func (d *desk) vault() {
	vault := d.house.Features.Vault
	can := vault != nil
	handleGrant(d, form.Deposit, caller.OneTime, can, func(v *visit, req *driver.DepositRequest) (form.Nothing, error) {
		if err := v.House.Limits.Keep(v.Caller, limit.Token(req.Digest), len(req.Payload), req.TTL+req.Memory, false); err != nil {
			return form.Nothing{}, err
		}
		return form.Nothing{}, vault.Deposit(v.ctx, *req)
	})
	handleGrant(d, form.Redeem, caller.OneTime, can, func(v *visit, req *driver.RedeemRequest) (reply driver.VaultReply, err error) {
		reply, err = vault.Redeem(v.ctx, *req)
		if err == nil && reply.Granted {
			v.House.Limits.Emptied(limit.Token(req.Proof.Digest()))
		}
		return reply, err
	})
	handleGrant(d, form.Peek, caller.OneTime, can, func(v *visit, req *form.Proof) (driver.VaultReply, error) {
		return vault.Peek(v.ctx, req.Proof)
	})
	handleGrant(d, form.Revoke, caller.OneTime, can, func(v *visit, req *form.Digest) (reply driver.VaultReply, err error) {
		reply, err = vault.Revoke(v.ctx, req.Digest)
		if err == nil {
			v.House.Limits.Emptied(limit.Token(req.Digest))
		}
		return reply, err
	})
	handleGrant(d, form.Prune, caller.Admin, can, func(v *visit, req *form.Limit) (reply form.Pruned, err error) {
		reply.Deleted, reply.More, err = vault.Prune(v.ctx, req.Limit)
		return reply, err
	})
}
