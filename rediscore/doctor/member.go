package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// Check checks the server of a member as Diagnose does. It also tries the requests of a quorum on a
// lock with a random name, and removes all traces of it that the user may remove. quarantine is the
// quarantine of the quorum. Like any proposal, the check begins it if the server has lost its
// memory.
//
// Check returns the run ID of the server, which identifies it. An error means that the server does
// not reply. Problems of the server are findings.
func Check(ctx context.Context, e *rediscore.Engine, m driver.Member, req driver.DiagnoseRequest, quarantine time.Duration) (run string, d driver.Diagnosis, err error) {
	s := &survey{Engine: e, store: e.Store(), req: req, member: true}
	servers, closeAll, err := s.reach(ctx)
	if err != nil {
		return "", driver.Diagnosis{}, err
	}
	defer closeAll()
	for _, server := range servers {
		s.lookAt(ctx, server)
		s.lookAtRole(server)
	}
	s.tryRights(ctx, memberRights(), s.store.Keys().Key(keys.Marker, ""))
	s.tryMember(ctx, m, quarantine)
	s.lookAtKeys(ctx, servers)
	return servers[0].info["run_id"], driver.Diagnosis{Findings: s.findings}, ctx.Err()
}

// lookAtRole reports a replica, which has the memory of another server.
func (s *survey) lookAtRole(server *server) {
	if server.info.isReplica() {
		s.failed("independence", server.addr, fmt.Errorf("%w member: it is a read-only replica of %s: members are masters of their own",
			driver.ErrInvalid, net.JoinHostPort(server.info["master_host"], server.info["master_port"])))
	}
}

// tryMember tries the requests of a quorum on a lock with a random name.
func (s *survey) tryMember(ctx context.Context, m driver.Member, quarantine time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	req := driver.ProposeRequest{
		Name: driver.ProbePrefix + string(lockinfo.NewLeaseID()), LeaseID: lockinfo.NewLeaseID(), Proposer: driver.NewProposer(), TTL: probeTTL,
		Holder: lockinfo.Holder{Label: "holdfast doctor"}, Quarantine: quarantine,
	}
	defer s.erase(ctx, s.store.Keys().Of(strings.Fields(keys.Lease), req.Name, req.LeaseID))
	// The token of a proposal must be near the server's clock.
	reply, err := s.tell(ctx, s.store.Conn(), "TIME")
	now, ok := parseTime(reply)
	if err == nil && !ok {
		err = form.Malformed("time", reply)
	}
	admitted := false
	if err == nil {
		req.Token, req.Lead = uint64(now.UnixMicro())&^1, time.Second
		admitted, err = s.probeQuarantine(ctx, m, req)
	}
	if err != nil {
		s.failed("locks", "", err)
	} else if admitted {
		s.tryRest(ctx, m, req)
	}
}

// probeQuarantine proposes a lease, and reports whether the server accepts it.
func (s *survey) probeQuarantine(ctx context.Context, m driver.Member, req driver.ProposeRequest) (admitted bool, err error) {
	reply, err := m.Propose(ctx, req)
	admitted = reply.Vote == driver.VoteAccepted
	f := driver.Finding{Key: "quarantine", Text: "over", Measures: map[string]time.Duration{"remaining": reply.Remaining}}
	switch {
	case err != nil:
		return false, fmt.Errorf("propose fails: %w", err)
	case reply.Vote == driver.VoteQuarantined:
		f.Level = driver.Warn
		f.Text = "the server is new, was started again, or lost its data: it grants nothing for another " + probe.Brief(reply.Remaining)
	case !admitted || reply.Token != req.Token:
		return false, fmt.Errorf("propose: %w", expect(nil, false, reply))
	}
	s.add(f)
	return admitted, nil
}

// tryRest renews and withdraws the proposed lease.
func (s *survey) tryRest(ctx context.Context, m driver.Member, req driver.ProposeRequest) {
	s.try(ctx, "locks", "propose, renew and withdraw do what they should",
		step{"renew", func(ctx context.Context) error {
			renewal := m.Renew(ctx, []driver.RenewRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: 2 * probeTTL}})[0]
			return expect(renewal.Err, renewal.Token == req.Token, renewal.Token)
		}},
		step{"withdraw", func(ctx context.Context) error {
			token, err := m.Withdraw(ctx, driver.WithdrawRequest{Name: req.Name, LeaseID: req.LeaseID, Released: true, Token: req.Token, Lead: req.Lead})
			return expect(err, token == req.Token, token)
		}},
		// INVARIANT I5: a lease that was withdrawn is not accepted again.
		step{"propose after withdraw", func(ctx context.Context) error {
			reply, err := m.Propose(ctx, req)
			return expect(err, reply.Vote == driver.VoteRefused, reply)
		}})
}
