package mem

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. A lease that was withdrawn or broken can be neither accepted nor repaired
// afterwards, whether or not the member had it (INVARIANT I5). An engine withdraws only leases
// that it has proposed itself: another engine's proposal may have been granted.

// Break implements driver.Breaker, and raises the counter, as a member must.
func (m *Member) Break(ctx context.Context, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	return m.breakLeases(ctx, req, func(l *lock, now time.Time) {
		if near(req.Token, now, 1<<62, 2*driver.MaxTokenLead) {
			l.lastToken = max(l.lastToken, req.Token|1)
		}
	})
}

// Withdraw implements driver.Member.
func (m *Member) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	if err := req.Check(); err != nil {
		return 0, err
	}
	return answer(ctx, m.store, func(now time.Time) (uint64, error) {
		if req.Cancel {
			m.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
		}
		l := m.settleLocked(req.Name, now)
		own := l.held(req.LeaseID)
		ends := own != nil && own.withdrawnBy(req)
		// A lease that stays can be repaired, so the counter must not rise above its token.
		stays := own != nil && !ends && own.token == req.Token
		if req.Token != 0 && !stays && near(req.Token, now, 1<<62, req.Lead+driver.TombstoneTTL) {
			l.lastToken = max(l.lastToken, req.Token|1)
		}
		if !ends {
			return 0, driver.ErrLost
		}
		l.lastToken = max(l.lastToken, own.token|1)
		if req.KeepFor > 0 {
			own.keepClosed(now, req.KeepFor)
		} else {
			l.end(own)
		}
		m.serveLocked(l, now)
		return own.token, nil
	})
}

// withdrawnBy reports whether req ends the lease. A release does; otherwise only its proposer can
// withdraw it, until it is confirmed (INVARIANT I5).
func (h *lease) withdrawnBy(req driver.WithdrawRequest) bool {
	return req.Released || h.proposer == req.Proposer && h.token <= req.Token
}
