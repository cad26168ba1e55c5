package member

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// Propose implements driver.Member.
func (m *Member) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return driver.ProposeReply{}, err
	}
	if err := e.Store().Enter(ctx, req.Name); err != nil {
		return driver.ProposeReply{}, err
	}
	reply, err := e.Store().Eval(ctx, m.scripts.Propose, e.Store().Keys().Of(m.scripts.Propose.Keys, req.Name, req.LeaseID), []string{
		string(req.LeaseID), form.MS(req.TTL), form.Token(req.Token), form.Token(req.Replaces),
		form.US(req.Lead), form.US(driver.MaxProposalLag),
		form.MS(req.Quarantine), form.MS(driver.TokenMemory), form.Holder(req.Holder),
	})
	if err != nil {
		return driver.ProposeReply{}, err
	}
	answer, err := parsePropose(reply)
	if err == nil && answer.Vote == driver.VoteAccepted {
		e.Store().Granted(1)
	}
	return answer, err
}

// Renew implements driver.Member. All requests go out as one command.
func (m *Member) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	replies := make([]driver.RenewReply, len(reqs))
	fail := func(i int, err error) { replies[i].Err = err }
	e, err := m.connect(ctx)
	if err != nil {
		for i := range replies {
			fail(i, err)
		}
		return replies
	}
	name := func(i int) string { return reqs[i].Name }
	e.Store().Batch(ctx, len(reqs), name, fail, func(group []int) {
		layout := &m.scripts.Renew.Layout
		keys := e.Store().Keys().Of(layout.Keys, "", "")
		args := []string{form.MS(driver.TokenMemory), form.US(2 * driver.MaxTokenLead)}
		for _, i := range group {
			keys = e.Store().Keys().Append(keys, layout.EachKeys, reqs[i].Name, reqs[i].LeaseID)
			args = appendRenewal(args, reqs[i])
		}
		answers := make([]driver.RenewReply, len(group))
		reply, err := e.Store().Eval(ctx, m.scripts.Renew, keys, args)
		if err == nil {
			err = parseRenew(reply, answers)
		}
		for n, i := range group {
			if replies[i] = answers[n]; err != nil {
				fail(i, err)
			}
		}
	})
	return replies
}

// appendRenewal adds what member_renew.lua wants of a request.
func appendRenewal(args []string, req driver.RenewRequest) []string {
	holder := ""
	if req.Repair {
		holder = form.Holder(req.Holder)
	}
	return append(args, string(req.LeaseID), form.MS(req.TTL), form.Flag(req.Repair), form.Token(req.Token), form.MS(req.Quarantine), holder)
}

// Withdraw implements driver.Member.
func (m *Member) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return 0, err
	}
	if err := e.Store().Enter(ctx, req.Name); err != nil {
		return 0, err
	}
	remember := "0"
	if req.Cancel {
		remember = form.MS(driver.TombstoneTTL)
	}
	reply, err := e.Store().Eval(ctx, m.scripts.Withdraw, e.Store().Keys().Of(m.scripts.Withdraw.Keys, req.Name, req.LeaseID), []string{
		string(req.LeaseID), form.Token(req.Token), form.US(req.Lead + driver.TombstoneTTL),
		form.MS(max(req.KeepFor, 0)), remember, form.MS(driver.TokenMemory),
	})
	if err != nil {
		return 0, err
	}
	token, err := parseWithdraw(reply)
	if err == nil {
		e.Store().Ended()
	}
	return token, err
}

// Admit implements driver.Member.
func (m *Member) Admit(ctx context.Context) error {
	e, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if err := e.Store().Enter(ctx, ""); err != nil {
		return err
	}
	_, err = e.Store().Eval(ctx, m.scripts.Admit, e.Store().Keys().Of(m.scripts.Admit.Keys, "", ""), nil)
	return err
}
