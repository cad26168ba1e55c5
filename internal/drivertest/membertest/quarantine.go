package membertest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func quarantineRules() []rule {
	return []rule{
		{"QuarantineAfterLoss", quarantineAfterLoss},
		{"QuarantineEnds", quarantineEnds},
		{"QuarantineIsNotProlonged", quarantineNotProlonged},
		{"QuarantineRepairsNothing", quarantineRepairsNothing},
		{"QuarantineRenewsAndWithdraws", quarantineRenews},
		{"AdmitIsKept", admitIsKept},
	}
}

// restart makes the member lose its data.
func (t *T) restart() {
	t.Helper()
	t.harness.Restart(t, t.Member)
}

// fresh returns a proposal with a token from the local clock, for a member that must not get
// another request first.
func (t *T) fresh(name string) driver.ProposeRequest {
	return driver.ProposeRequest{
		Name: name, LeaseID: lockinfo.NewLeaseID(), Proposer: driver.NewProposer(), TTL: t.units(40),
		Token: uint64(time.Now().UnixMicro()) &^ 1, Lead: time.Minute, Quarantine: t.units(4),
	}
}

func quarantineAfterLoss(t *T) {
	t.take("a", t.units(40))
	t.restart()
	req := t.fresh("a")
	reply := t.vote("a proposal after the loss of everything", req, driver.VoteQuarantined)
	t.want(reply.Remaining <= t.units(4) && reply.Remaining >= t.units(3), "%s of the quarantine remain, want %s", reply.Remaining, t.units(4))
	t.untouched()
}

func quarantineEnds(t *T) {
	t.restart()
	start := time.Now()
	req := t.fresh("a")
	t.vote("a proposal in quarantine", req, driver.VoteQuarantined)
	var reply driver.ProposeReply
	for reply.Vote != driver.VoteAccepted && time.Since(start) < t.units(8) {
		time.Sleep(t.harness.Unit / 10)
		req = t.fresh("a")
		reply = t.propose(req)
	}
	took := time.Since(start)
	t.want(reply.Vote == driver.VoteAccepted && took >= t.units(4)-early, "vote %d after %s of a quarantine of %s", reply.Vote, took, t.units(4))
}

func quarantineNotProlonged(t *T) {
	t.restart()
	t.vote("a proposal in quarantine", t.fresh("a"), driver.VoteQuarantined)
	time.Sleep(t.units(1))
	reply := t.vote("another", t.fresh("b"), driver.VoteQuarantined)
	t.want(reply.Remaining <= t.units(3)+early, "%s of the quarantine remain after %s of %s", reply.Remaining, t.units(1), t.units(4))
}

func quarantineRepairsNothing(t *T) {
	req := t.take("a", t.units(40))
	t.restart()
	t.lost("repair in quarantine", t.renew(t.repair(req)).Err) // the member finds no marker, and writes one
	t.vote("a proposal in quarantine", t.fresh("b"), driver.VoteQuarantined)
	t.lost("repair in quarantine", t.renew(t.repair(req)).Err)
	t.free("a")
	t.admit()
	t.repaired(req)
}

// quarantineRenews: a member in quarantine lengthens and ends leases that it has not lost.
func quarantineRenews(t *T) {
	t.restart()
	req := t.fresh("a")
	single := drivertest.Request("a", t.units(4))
	req.LeaseID, req.Token = single.LeaseID, drivertest.Granted(t, t.harness.Engine(t, t.Member), single)
	t.vote("a proposal in quarantine", t.fresh("b"), driver.VoteQuarantined)
	t.extend(req, t.units(40))
	t.ends("Withdraw in quarantine", ofReleased(req), req.Token)
	t.free("a")
}

func admitIsKept(t *T) {
	t.restart()
	t.admit()
	t.accepted(t.ask("a", t.units(4)))
	t.restart()
	t.vote("a proposal after another loss", t.fresh("a"), driver.VoteQuarantined)
}
