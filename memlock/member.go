package memlock

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
)

// Duties shown here. A member decides in the order that driver.Member gives, and
// changes nothing but for a lease that it accepts. Its counter, the last token of
// the name, never goes down: what was withdrawn or broken raises it, and is
// neither accepted nor repaired afterwards (INVARIANT I4). The quarantine begins
// with the first request that finds no marker, which is lost with the leases.

// A Member is an engine's store as one of the stores of a quorum; see package
// quorumlock. Use NewMember to make one. It is in quarantine until Admit is
// called, or the quarantine is over.
type Member struct {
	engine     *Engine
	marked     bool      // Engine.mu guards the rest
	quarantine time.Time // its end, if marked
}

var (
	_ driver.Member     = (*Member)(nil)
	_ driver.Lister     = (*Member)(nil)
	_ driver.Breaker    = (*Member)(nil)
	_ driver.LossTeller = (*Member)(nil)
)

// NewMember returns a member with an empty store.
func NewMember() *Member { return &Member{engine: New()} }

// Engine returns the engine on the member's store: leases that are acquired
// through it and those of the quorum exclude each other.
func (m *Member) Engine() *Engine { return m.engine }

// Restart makes the member forget its locks, as a server does that is started
// again without its data. It is for tests.
func (m *Member) Restart() {
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	m.engine.locks = map[string]*lock{}
	m.engine.tombstones = map[driver.LeaseID]time.Time{}
	m.marked = false
}

// Admit implements driver.Member.
func (m *Member) Admit(ctx context.Context) error {
	now, err := m.engine.enter(ctx)
	if err != nil {
		return err
	}
	defer m.engine.mu.Unlock()
	m.marked, m.quarantine = true, now
	return nil
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
	now, err := m.engine.enter(ctx)
	if err != nil {
		return driver.ProposeReply{}, err
	}
	defer m.engine.mu.Unlock()
	m.engine.sweepLocked(now)
	l := m.engine.settleLocked(req.Name, now)
	var v rules.View
	first := l.look(&v, now)
	if err := v.CheckKind(quorumNeed()); err != nil { // INVARIANT I12
		return driver.ProposeReply{}, err
	}
	reply := m.voteLocked(l, &v, req, now)
	if reply.Vote == driver.VoteHeld {
		reply.Blocker = v.Blocker(first.describe(now), 0, len(l.queue))
	}
	reply.Counter, reply.Clock = l.lastToken, uint64(now.UnixMicro())
	return reply, nil
}

// voteLocked answers a proposal for a lock that is settled, and of which v was seen.
func (m *Member) voteLocked(l *lock, v *rules.View, req driver.ProposeRequest, now time.Time) driver.ProposeReply {
	// INVARIANT I5: a request overtaken by its own cancel grants nothing.
	if m.engine.cancelledLocked(req.LeaseID, now) {
		return driver.ProposeReply{Vote: driver.VoteCancelled}
	}
	own := l.held(req.LeaseID)
	if own != nil && (own.token == req.Token || own.token > req.Replaces) {
		lengthen(&own.expiry, now.Add(req.TTL)) // INVARIANT I6
		vote := driver.VoteOwn
		if own.token == req.Token {
			vote = driver.VoteAccepted
		}
		return driver.ProposeReply{Vote: vote, Token: own.token}
	}
	if own == nil && !v.Free(quorumNeed()) { // INVARIANT I1
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
	l.accept(own, req.LeaseID, req.Holder, req.Token, now, now.Add(req.TTL))
	return driver.ProposeReply{Vote: driver.VoteAccepted, Token: req.Token}
}

// quorumNeed is what the leases of a quorum need.
func quorumNeed() rules.Need { return rules.Need{Mode: driver.Exclusive} }

// free reports whether nothing is in the way of a lease of the quorum.
func (l *lock) free(now time.Time) bool {
	var v rules.View
	l.look(&v, now)
	return v.Free(quorumNeed())
}

// accept records a lease with a token that the counter is not above. It takes the
// place of own, unless that is nil, and ends no earlier.
func (l *lock) accept(own *lease, id driver.LeaseID, holder driver.Holder, token uint64, granted, expiry time.Time) {
	h := l.grant(&driver.AcquireRequest{LeaseID: id, Holder: holder}, token, granted, expiry)
	if own != nil {
		l.end(own)
		lengthen(&h.expiry, own.expiry)
	}
}

// near reports whether token, read as microseconds, is no more than lag behind
// now and no more than lead ahead of it.
func near(token uint64, now time.Time, lag, lead time.Duration) bool {
	ahead := int64(token) - now.UnixMicro()
	return ahead >= -lag.Microseconds() && ahead <= lead.Microseconds()
}

// Renew implements driver.Member.
func (m *Member) Renew(ctx context.Context, reqs []driver.RenewRequest) []driver.RenewReply {
	failed := func(err error) driver.RenewReply { return driver.RenewReply{Err: err} }
	return each(ctx, m.engine, reqs, failed, m.renewLocked)
}

func (m *Member) renewLocked(req driver.RenewRequest, now time.Time) driver.RenewReply {
	l := m.engine.settleLocked(req.Name, now)
	own := l.held(req.LeaseID)
	if own != nil && (!req.Repair || own.token >= req.Token) {
		lengthen(&own.expiry, now.Add(req.TTL))
		return driver.RenewReply{Token: own.token}
	}
	// INVARIANT I4: a lease that somebody else had in between, or that was
	// withdrawn, does not come back.
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
		!m.engine.cancelledLocked(req.LeaseID, now) &&
		m.remainingLocked(now, req.Quarantine) == 0
}

// Inspect implements driver.Member.
func (m *Member) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	return m.engine.Inspect(ctx, name)
}

// Capabilities implements driver.Member.
func (m *Member) Capabilities() driver.Capabilities {
	return driver.Capabilities{Break: true, Losses: true, List: true}
}

// Close implements driver.Member. It closes the engine.
func (m *Member) Close() error { return m.engine.Close() }

// List implements driver.Lister.
func (m *Member) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return m.engine.List(ctx, prefix)
}

// OnLoss implements driver.LossTeller.
func (m *Member) OnLoss(told func(driver.Loss)) (stop func()) { return m.engine.OnLoss(told) }

// Breaks implements driver.Breaker.
func (m *Member) Breaks(ctx context.Context, name string) ([]driver.Broken, error) {
	return m.engine.Breaks(ctx, name)
}

// Break implements driver.Breaker, with the member's duty to the counter.
func (m *Member) Break(ctx context.Context, req driver.BreakRequest) ([]driver.Broken, error) {
	all, ended, err := m.engine.breakLeases(ctx, req, func(l *lock, now time.Time) {
		if near(req.Token, now, 1<<62, 2*driver.MaxTokenLead) {
			l.lastToken = max(l.lastToken, req.Token|1)
		}
	})
	m.engine.tellLost(req.Name, ended)
	return all, err
}

// Withdraw implements driver.Member.
func (m *Member) Withdraw(ctx context.Context, req driver.WithdrawRequest) (uint64, error) {
	now, err := m.engine.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer m.engine.mu.Unlock()
	if req.Cancel {
		m.engine.tombstones[req.LeaseID] = now.Add(driver.TombstoneTTL)
	}
	l := m.engine.settleLocked(req.Name, now)
	if req.Token != 0 && near(req.Token, now, 1<<62, req.Lead+driver.TombstoneTTL) {
		l.lastToken = max(l.lastToken, req.Token|1)
	}
	own := l.held(req.LeaseID)
	if own == nil || req.Token != 0 && own.token > req.Token {
		return 0, driver.ErrLost
	}
	l.lastToken = max(l.lastToken, own.token|1)
	if req.KeepFor > 0 {
		own.keepClosed(now.Add(req.KeepFor))
	} else {
		l.end(own)
	}
	m.engine.serveLocked(l, now)
	return own.token, nil
}
