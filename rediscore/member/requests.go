package member

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// ask runs a script for a name, and a lease ID if it has one.
func (m *member) ask(ctx context.Context, script *lua.Script, name string, id lockinfo.LeaseID, args ...string) (*rediscore.Store, any, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	reply, err := e.Store().EvalAbout(ctx, script, name, id, args...)
	return e.Store(), reply, err
}

// Propose implements driver.Member.
func (m *member) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	if err := req.Check(); err != nil {
		return driver.ProposeReply{}, err
	}
	store, reply, err := m.ask(ctx, m.scripts.Propose, req.Name, req.LeaseID,
		string(req.LeaseID), string(req.Proposer), form.MS(req.TTL), form.Token(req.Token), form.Token(req.Replaces), form.US(req.Lead),
		form.US(driver.MaxProposalLag), form.MS(req.Quarantine), form.MS(driver.TokenMemory), holders.Text(req.Holder))
	if err != nil {
		return driver.ProposeReply{}, err
	}
	answer, err := parsePropose(reply)
	if err == nil && answer.Vote == driver.VoteAccepted {
		store.Granted(1)
	}
	return answer, err
}

// Renew implements driver.Member. All requests go in one command.
func (m *member) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	e, err := m.connect(ctx)
	if err != nil {
		return slices.Repeat([]driver.RenewReply{{Err: err}}, len(reqs))
	}
	replies := make([]driver.RenewReply, len(reqs))
	e.Store().EvalEach(ctx, len(reqs), rediscore.Batch{
		Op: "renew", Script: m.scripts.Renew, Args: []string{form.MS(driver.TokenMemory), form.US(2 * driver.MaxTokenLead)},
		Name: func(i int) (string, lockinfo.LeaseID) { return reqs[i].Name, reqs[i].LeaseID },
		Add:  func(args []string, i int) []string { return appendRenewal(args, reqs[i]) },
		Answer: func(i int, item any, err error) {
			if replies[i] = parseRenew(item); err != nil {
				replies[i] = driver.RenewReply{Err: err}
			}
		},
	})
	return replies
}

// appendRenewal adds the arguments that member_renew.lua reads.
func appendRenewal(args []string, req driver.RenewRequest) []string {
	holder := ""
	if req.Repair {
		holder = holders.Text(req.Holder)
	}
	return append(args, string(req.LeaseID), form.MS(req.TTL), form.Flag(req.Repair), form.Token(req.Token), form.MS(req.Quarantine), form.US(req.Since), holder)
}

// Withdraw implements driver.Member.
func (m *member) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	if err := req.Check(); err != nil {
		return 0, err
	}
	remember := "0"
	if req.Cancel {
		remember = form.MS(driver.TombstoneTTL)
	}
	store, reply, err := m.ask(ctx, m.scripts.Withdraw, req.Name, req.LeaseID,
		string(req.LeaseID), string(req.Proposer), form.Flag(req.Released), form.Token(req.Token), form.US(req.Lead+driver.TombstoneTTL),
		form.MS(max(req.KeepFor, 0)), remember, form.MS(driver.TokenMemory))
	if err != nil {
		return 0, err
	}
	token, err := parseWithdraw(reply)
	if err == nil {
		store.Ended()
	}
	return token, err
}

// Admit implements driver.Member.
func (m *member) Admit(ctx context.Context) error {
	_, _, err := m.ask(ctx, m.scripts.Admit, "", "")
	return err
}

// Check implements quorumlock.Checker; see doctor.Check.
func (m *member) Check(ctx context.Context, req driver.DiagnoseRequest, quarantine time.Duration) (run string, d driver.Diagnosis, err error) {
	reaching, cancel := context.WithTimeout(ctx, doctor.Limit)
	e, err := m.connect(reaching)
	cancel()
	if err != nil {
		return "", driver.Diagnosis{}, err
	}
	return doctor.Check(ctx, e, m, req, quarantine)
}
