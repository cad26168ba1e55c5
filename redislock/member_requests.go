package redislock

import (
	"context"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
)

// Propose implements driver.Member.
func (m *Member) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return driver.ProposeReply{}, err
	}
	if err := e.enter(ctx, req.Name); err != nil {
		return driver.ProposeReply{}, err
	}
	reply, err := e.exec(ctx, m.propose, append(e.keys.member(req.Name, req.LeaseID), e.keys.marker()), []string{
		string(req.LeaseID), formatMS(req.TTL), formatToken(req.Token), formatToken(req.Replaces),
		strconv.FormatInt(req.Lead.Microseconds(), 10), strconv.FormatInt(driver.MaxProposalLag.Microseconds(), 10),
		formatMS(req.Quarantine), formatMS(driver.TokenMemory), formatHolder(req.Holder),
	})
	if err != nil {
		return driver.ProposeReply{}, err
	}
	answer, err := parsePropose(reply)
	if err == nil && answer.Vote == driver.VoteAccepted {
		e.inbox.granted(1)
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
	e.batch(ctx, len(reqs), name, fail, func(group []int) {
		keys, args := []string{e.keys.marker()}, []string{
			formatMS(driver.TokenMemory), strconv.FormatInt(2*driver.MaxTokenLead.Microseconds(), 10),
		}
		for _, i := range group {
			keys = append(keys, e.keys.member(reqs[i].Name, reqs[i].LeaseID)...)
			args = appendRenewal(args, reqs[i])
		}
		answers := make([]driver.RenewReply, len(group))
		reply, err := e.exec(ctx, m.renew, keys, args)
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
	repair, holder := "0", ""
	if req.Repair {
		repair, holder = "1", formatHolder(req.Holder)
	}
	return append(args, string(req.LeaseID), formatMS(req.TTL), repair, formatToken(req.Token), formatMS(req.Quarantine), holder)
}

// Withdraw implements driver.Member.
func (m *Member) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	e, err := m.connect(ctx)
	if err != nil {
		return 0, err
	}
	if err := e.enter(ctx, req.Name); err != nil {
		return 0, err
	}
	remember := "0"
	if req.Cancel {
		remember = formatMS(driver.TombstoneTTL)
	}
	lift := (req.Lead + driver.TombstoneTTL).Microseconds()
	reply, err := e.exec(ctx, m.withdraw, e.keys.member(req.Name, req.LeaseID)[:3], []string{
		string(req.LeaseID), formatToken(req.Token), strconv.FormatInt(lift, 10),
		formatMS(max(req.KeepFor, 0)), remember, formatMS(driver.TokenMemory),
	})
	if err != nil {
		return 0, err
	}
	token, err := parseWithdraw(reply)
	if err == nil {
		e.inbox.ended()
	}
	return token, err
}

// Admit implements driver.Member.
func (m *Member) Admit(ctx context.Context) error {
	e, err := m.connect(ctx)
	if err != nil {
		return err
	}
	if err := e.enter(ctx, ""); err != nil {
		return err
	}
	_, err = e.exec(ctx, m.admit, []string{e.keys.marker()}, nil)
	return err
}

// member returns the keys of a lease that the scripts of a member want.
func (k keyspace) member(name string, id driver.LeaseID) []string {
	return []string{k.lock(name), k.fence(name), k.tombstone(name, id), k.companion(kindQueue, name, name)}
}

// marker returns the key that says until when the store is in quarantine.
func (k keyspace) marker() string { return k.prefix + reserved + "member}:marker" }

func formatToken(token uint64) string { return strconv.FormatUint(token, 10) }
