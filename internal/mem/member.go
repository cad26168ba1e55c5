package mem

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. A member decides in the order that driver.Member gives, and changes
// nothing unless it accepts a lease. Its counter, the last token of the name, never goes down.
// A withdrawal or a break raises it, so that the lease is neither accepted nor repaired
// afterwards (INVARIANT I4). The quarantine begins with the first request that finds no
// marker; the marker is lost with the leases.

// A Member is an engine's store as one of the stores of a quorum; see package
// quorumlock. Use NewMember to make one. It is in quarantine until Admit is
// called, or the quarantine has ended.
type Member struct {
	*store
	marked     bool      // Engine.mu guards the rest
	quarantine time.Time // its end, if marked
}

// store is Engine by another name, because Member has a method Engine. Member inherits Inspect,
// List, Breaks, OnLoss and Close.
type store = Engine

var (
	_ driver.Member     = (*Member)(nil)
	_ driver.Lister     = (*Member)(nil)
	_ driver.Breaker    = (*Member)(nil)
	_ driver.LossTeller = (*Member)(nil)
)

// NewMember returns a member with an empty store.
func NewMember() *Member { return &Member{store: New(nil)} }

// Engine returns the engine on the member's store. Its leases and the quorum's exclude each
// other.
func (m *Member) Engine() *Engine { return m.store }

// Restart makes the member lose its locks, like a server that restarts without its data. It is
// for tests.
func (m *Member) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks, m.touched = map[string]*lock{}, map[string]*lock{}
	m.tombstones = map[lockinfo.LeaseID]time.Time{}
	m.marked = false
}

// Admit implements driver.Member.
func (m *Member) Admit(ctx context.Context) error {
	return m.step(ctx, func(now time.Time) error {
		m.marked, m.quarantine = true, now
		return nil
	})
}

// remainingLocked returns what is left of the quarantine. If the store has no
// marker, it begins now and lasts for length.
func (m *Member) remainingLocked(now time.Time, length time.Duration) time.Duration {
	if !m.marked {
		m.marked, m.quarantine = true, now.Add(length)
	}
	return max(m.quarantine.Sub(now), 0)
}

// Propose implements driver.Member.
func (m *Member) Propose(ctx context.Context, req driver.ProposeRequest) (driver.ProposeReply, error) {
	if err := req.Check(); err != nil {
		return driver.ProposeReply{}, err
	}
	return answer(ctx, m.store, func(now time.Time) (driver.ProposeReply, error) {
		m.sweepLocked(now)
		l := m.settleLocked(req.Name, now)
		var v rules.View
		first := l.look(&v, now)
		if err := v.CheckKind(lockinfo.Exclusive); err != nil { // INVARIANT I12
			return driver.ProposeReply{}, err
		}
		reply := m.voteLocked(l, &v, req, now)
		if reply.Vote == driver.VoteHeld {
			reply.Blocker = v.Blocker(first.describe(now), 0, len(l.queue))
		}
		reply.Counter, reply.Clock = l.lastToken, uint64(now.UnixMicro())
		return reply, nil
	})
}

// voteLocked decides about a proposal for a settled lock, whose view is v.
func (m *Member) voteLocked(l *lock, v *rules.View, req driver.ProposeRequest, now time.Time) driver.ProposeReply {
	// INVARIANT I5: a request overtaken by its own cancel grants nothing.
	if m.cancelledLocked(req.LeaseID, now) {
		return driver.ProposeReply{Vote: driver.VoteCancelled}
	}
	own := l.held(req.LeaseID)
	switch {
	case own == nil:
	case own.proposer == req.Proposer && own.token == req.Token:
		own.renew(now, req.TTL) // INVARIANT I6
		return driver.ProposeReply{Vote: driver.VoteAccepted, Token: own.token}
	case own.proposer != req.Proposer || own.token > req.Replaces:
		return driver.ProposeReply{Vote: driver.VoteOwn, Token: own.token}
	}
	if own == nil && !v.Free(lockinfo.Exclusive) { // INVARIANT I1
		reply := driver.ProposeReply{Vote: driver.VoteHeld}
		if len(l.leases) > 0 {
			reply.Rival = l.leases[0].id
		}
		return reply
	}
	if left := m.remainingLocked(now, req.Quarantine); left > 0 {
		return driver.ProposeReply{Vote: driver.VoteQuarantined, Remaining: left}
	}
	// INVARIANT I2: above every token that was accepted or withdrawn.
	if req.Token <= l.lastToken || !near(req.Token, now, driver.MaxProposalLag, req.Lead) {
		return driver.ProposeReply{Vote: driver.VoteRefused}
	}
	l.accept(own, req.LeaseID, req.Holder, req.Token, now, now.Add(req.TTL)).proposer = req.Proposer
	return driver.ProposeReply{Vote: driver.VoteAccepted, Token: req.Token}
}

// free reports whether no lease or place is in the way of a lease of the quorum.
func (l *lock) free(now time.Time) bool {
	var v rules.View
	l.look(&v, now)
	return v.Free(lockinfo.Exclusive)
}

// accept records a lease. The counter must not be above its token. The lease replaces own, unless
// that is nil, and does not end earlier. It is confirmed unless the caller sets its proposer.
func (l *lock) accept(own *lease, id lockinfo.LeaseID, holder lockinfo.Holder, token uint64, granted, expiry time.Time) *lease {
	h := l.grant(&driver.AcquireRequest{LeaseID: id, Holder: holder}, token, granted, expiry)
	if own != nil {
		l.end(own)
		lengthen(&h.expiry, own.expiry)
	}
	return h
}

// near reports whether token, read as microseconds, is at most lag behind now and at most lead
// ahead of it.
func near(token uint64, now time.Time, lag, lead time.Duration) bool {
	ahead := int64(token) - now.UnixMicro()
	return ahead >= -lag.Microseconds() && ahead <= lead.Microseconds()
}

// Renew implements driver.Member.
func (m *Member) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	failed := func(err error) driver.RenewReply { return driver.RenewReply{Err: err} }
	return each(ctx, m.store, reqs, failed, m.renewLocked)
}

func (m *Member) renewLocked(req driver.RenewRequest, now time.Time) driver.RenewReply {
	l := m.settleLocked(req.Name, now)
	own := l.held(req.LeaseID)
	if own != nil && (own.token == req.Token || req.Token == 0 || req.Repair && own.token > req.Token) {
		own.renew(now, req.TTL)
		own.proposer = "" // the lease is confirmed: its holder has it
		return driver.RenewReply{Token: own.token}
	}
	// INVARIANT I4: a lease does not come back if another client had the lock since, or if it
	// was withdrawn.
	if !m.repairableLocked(l, own, req, now) {
		return driver.RenewReply{Err: driver.ErrLost}
	}
	l.accept(own, req.LeaseID, req.Holder, req.Token, now.Add(-req.Since), now.Add(req.TTL))
	return driver.RenewReply{Token: req.Token}
}

// repairableLocked reports whether the lease of req may be recorded anew.
func (m *Member) repairableLocked(l *lock, own *lease, req driver.RenewRequest, now time.Time) bool {
	return req.Repair && l.lastToken <= req.Token &&
		(own != nil || l.free(now)) &&
		near(req.Token, now, 1<<62, 2*driver.MaxTokenLead) &&
		!m.cancelledLocked(req.LeaseID, now) &&
		m.remainingLocked(now, req.Quarantine) == 0
}

// Capabilities implements driver.Member.
func (m *Member) Capabilities() driver.Capabilities {
	return driver.Capabilities{Break: true, Losses: true, List: true}
}
