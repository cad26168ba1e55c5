package quorumlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Break implements driver.Breaker, if all members do. It succeeds when a majority of the members
// has carried it out. None of these repairs the lease afterwards, so the lease has ended even if
// the others keep it until its expiry. Without a majority of answers the outcome is unknown.
func (e *engine) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	if err := e.enterIf(ctx, e.capable.Break, "breaking locks"); err != nil {
		return nil, err
	}
	defer e.running.Done()
	// Members lift their counters to the token of the request, so it must be the token of a lease.
	// If there is no such lease, the request is a repeat, or has no effect.
	token, err := e.tokenToBreak(ctx, req)
	if err != nil {
		return nil, err
	}
	request := driver.Breaker.Break
	if req.Token = token; token == 0 {
		// INVARIANT I6: a repeat gets the result of the first request, from the members' records.
		request = func(m driver.Breaker, ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
			return m.Breaks(ctx, req.Name)
		}
	}
	h, err := collectMajority(ctx, e, func(ctx context.Context, i int) ([]lockinfo.Broken, error) {
		return request(e.features[i].Breaker, ctx, req)
	})
	switch {
	case err != nil:
		return nil, err
	case len(h.answers) < e.quorum && token != 0:
		return nil, e.unclear(h.errs, len(h.answers) > 0)
	case len(h.answers) < e.quorum: // the requests only read
		return nil, e.missing(h.errs)
	}
	broken := map[uint64]lockinfo.Broken{}
	for token, of := range byToken(h.answers) {
		// The members report the leases that this request has ended, now or in an earlier copy. A
		// lease that too few members had was not the quorum's. A member without an answer counts as
		// one that had it.
		own := slices.DeleteFunc(of, func(b lockinfo.Broken) bool { return b.ID != req.ID })
		if len(own) > 0 && len(own)+len(e.members)-len(h.answers) >= e.quorum {
			broken[token] = own[0]
		}
	}
	return driver.ByToken(broken), nil
}

// tokenToBreak returns the greatest token of the members' leases that req concerns; 0 if there are
// none. A lease of a minority counts too: it may be the remains of a lease, or the beginning of
// one.
func (e *engine) tokenToBreak(ctx context.Context, req driver.BreakRequest) (token uint64, err error) {
	locks, err := read(ctx, e, func(ctx context.Context, i int) (lockinfo.LockState, error) {
		return e.members[i].Inspect(ctx, req.Name)
	})
	if err != nil {
		return 0, err
	}
	foreign := 0 // members on which another client has the name
	for _, lock := range locks {
		for _, holding := range lock.Holders {
			switch {
			case holding.Foreign():
				foreign++
			case req.Hits(holding.Token, holding.Released):
				token = max(token, holding.Token)
			}
		}
	}
	if foreign > len(e.members)-e.quorum {
		return 0, fmt.Errorf("%w: a client that is not holdfast has it: end it there", driver.ErrKindMismatch)
	}
	return token, nil
}

// Breaks implements driver.Breaker: it merges the members' records. A majority answers, and a break
// has reached a majority, so at least one of them has its record. A broken lease may have been
// released before, if the release had not reached a member.
func (e *engine) Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error) {
	if err := e.enterIf(ctx, e.capable.Break, "breaking locks"); err != nil {
		return nil, err
	}
	defer e.running.Done()
	answers, err := read(ctx, e, func(ctx context.Context, i int) ([]lockinfo.Broken, error) {
		return e.features[i].Breaker.Breaks(ctx, name)
	})
	if err != nil {
		return nil, err
	}
	broken := map[uint64]lockinfo.Broken{}
	for token, of := range byToken(answers) {
		broken[token] = of[0]
	}
	all := driver.ByToken(broken)
	return all[max(0, len(all)-driver.MaxBreaks):], nil
}

// byToken groups the members' records by the token of the lease.
func byToken(answers [][]lockinfo.Broken) map[uint64][]lockinfo.Broken {
	all := map[uint64][]lockinfo.Broken{}
	for _, a := range answers {
		for _, b := range a {
			all[b.Token] = append(all[b.Token], b)
		}
	}
	return all
}
