package enginetest_test

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func (e *engine) Prune(ctx context.Context, limit int) (deleted int, more bool, err error) {
	now, err := e.enterVault(ctx, "Prune")
	if err != nil {
		return 0, false, err
	}
	defer e.mu.Unlock()
	emptied := 0
	for key, d := range e.deposits {
		useless, isOver := e.useless(d, now)
		switch {
		case isOver && deleted == limit && e.fault != "Prune ignores the limit",
			useless && emptied == limit:
			more = true
		case isOver:
			delete(e.deposits, key)
			deleted++
		case useless:
			d.payload = nil
			emptied++
		}
	}
	switch e.fault {
	case "Prune counts payloads":
		deleted = min(deleted+emptied, limit)
	case "Prune always has more":
		more = true
	case "Prune never has more":
		more = false
	case "Prune does not count":
		deleted = 0
	}
	if e.tidy {
		deleted, more = 0, false
	}
	return deleted, more, nil
}

// useless reports whether the payload of a token can be deleted, and whether the whole token can.
func (s *store) useless(d *deposit, now time.Time) (payload, all bool) {
	if s.fault == "Prune does nothing" {
		return false, false
	}
	state := s.stateAt(d, now)
	all = !now.Before(d.forget) && (s.fault != "Prune leaves redeemed tokens" || d.state != driver.Redeemed) &&
		(s.fault != "Prune leaves revoked tokens" || d.state != driver.Revoked)
	switch state {
	case driver.Expired:
		payload = true
		all = all || s.fault == "Prune deletes expired tokens"
	case driver.Redeemed:
		payload = !s.repeats(d, driver.RedeemRequest{By: d.taker}, state, now) || s.fault == "Prune forgets RedeemGrace" ||
			s.fault == "Prune forgets RedeemGrace when the TTL is over" && !now.Before(d.expiry)
		all = all || s.fault == "Prune deletes redeemed tokens"
	case driver.Revoked:
		all = all || s.fault == "Prune deletes revoked tokens"
	case driver.Fresh:
		payload = s.fault == "Prune deletes fresh payloads"
	}
	return payload && !all && d.payload != nil, all
}

// SelfPruning reports whether the store deletes tokens by itself, which cannot be observed.
func (e *engine) SelfPruning() bool {
	switch e.fault {
	case "SelfPruning leaves work to Prune":
		return true
	case "SelfPruning changes":
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.deposits) > 0
	}
	return e.tidy
}
