package membertest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// breakRules returns the rules for members that implement driver.Breaker.
func breakRules() []rule {
	return []rule{
		{"BreakStopsRepair", ifBreaker(breakStopsRepair)},
		{"BreakOfMissingStopsRepair", ifBreaker(breakOfMissing)},
		{"BreakDoesNotFollowWrongClock", ifBreaker(breakFarAhead)},
		{"BreakTellsHolder", ifBreaker(breakTells)},
	}
}

func ifBreaker(run func(*T)) func(*T) {
	return func(t *T) {
		if t.features.Break {
			run(t)
		}
	}
}

// mustBreak breaks the lease of "a" with a token. The break must end want leases.
func (t *T) mustBreak(token uint64, want int) {
	t.Helper()
	req := driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "a", Token: token, Author: "ada", Reason: "stuck"}
	broken, err := t.features.Breaker.Break(t.Context(), req)
	t.need(err == nil && len(broken) == want, "Break = %+v, %v; want %d leases", broken, err, want)
}

func breakStopsRepair(t *T) {
	req := t.take("a", t.units(40))
	t.mustBreak(req.Token, 1)
	t.free("a")
	t.lost("repair of a broken lease", t.renew(t.repair(req)).Err)
	t.vote("the proposal, late", req, driver.VoteRefused)
	t.counter("a", req.Token+1)
}

// breakOfMissing: other members have the lease, and this member never had it.
func breakOfMissing(t *T) {
	missing := t.ask("a", t.units(40))
	t.mustBreak(missing.Token, 0)
	t.lost("repair of a lease that was broken elsewhere", t.renew(t.repair(missing)).Err)
	next := missing
	next.Token += 2
	t.accepted(next)
}

func breakFarAhead(t *T) {
	req := t.take("a", t.units(40))
	t.mustBreak(req.Token+uint64((3*driver.MaxTokenLead).Microseconds()), 0)
	t.counter("a", req.Token)
	t.holding(req)
}

func breakTells(t *T) {
	if !t.features.Losses {
		return
	}
	losses := make(chan driver.Loss, 10)
	stop := t.features.LossTeller.OnLoss(func(l driver.Loss) { losses <- l })
	defer stop()
	req := t.take("a", t.units(40))
	time.Sleep(t.units(2) + driver.LossStart)
	t.mustBreak(req.Token, 1)
	select {
	case l := <-losses:
		t.want(l.LeaseID == req.LeaseID && l.Name == "a" && errors.Is(l.Err, driver.ErrBroken), "received %+v", l)
	case <-time.After(t.units(4)):
		t.Error("no report of the loss")
	}
}
