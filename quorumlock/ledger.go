package quorumlock

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A ledger is an engine's memory of its requests. Other engines on the same members do not share
// it. It serves speed, the repair of members that lost a lease, and the order of the engine's
// proposals. For one lease ID their tokens only grow, so that a withdrawal, which ends only the
// engine's own proposals, never ends a lease that counts. INVARIANT I11: old entries are deleted.
type ledger struct {
	mu      sync.Mutex // guards the rest, including the entries
	entries map[lockinfo.LeaseID]*entry
	// counters are the members' greatest counters that are ahead of this machine's clock: they
	// would refuse a token below.
	counters map[string]proposal
	// ahead is how far the members' clocks were ahead of this machine's, in microseconds, when a
	// guess was last too far off.
	ahead   int64
	sweepAt time.Time
}

// An entry is about one lease ID.
type entry struct {
	turn   chan struct{} // holds a value while an acquire of this ID is in progress
	until  time.Time     // when it may be forgotten
	lease  tenure        // Token is 0 unless the lease was granted
	latest proposal      // the last proposal, which has the greatest token
}

// A tenure is a lease that was granted.
type tenure struct {
	token   uint64
	lead    time.Duration // of the proposal; 0 if unknown
	ttl     time.Duration
	holder  lockinfo.Holder
	granted time.Time // when a majority had granted it; zero if this engine did not acquire it
}

// forgetAfter is how long after its TTL a lease ID is remembered: as long as a copy of its
// requests, including withdrawals, can be in flight.
const forgetAfter = driver.TombstoneTTL + maxTimeout

// take reserves the entry of id for the caller until leave is called. It waits for the previous
// caller.
func (l *ledger) take(ctx context.Context, id lockinfo.LeaseID, ttl time.Duration) (*entry, error) {
	l.mu.Lock()
	en := l.entryLocked(id)
	en.keep(ttl)
	l.mu.Unlock()
	select {
	case en.turn <- struct{}{}:
		return en, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// entryLocked returns the entry of id, and makes it if necessary.
func (l *ledger) entryLocked(id lockinfo.LeaseID) *entry {
	en := l.entries[id]
	if en == nil {
		en = &entry{turn: make(chan struct{}, 1)}
		l.entries[id] = en
	}
	return en
}

// leave ends the reservation of take.
func (l *ledger) leave(en *entry, ttl time.Duration) {
	l.mu.Lock()
	en.keep(ttl)
	l.mu.Unlock()
	<-en.turn
}

// keep keeps the entry for as long as a request in flight for a lease of ttl may matter.
func (en *entry) keep(ttl time.Duration) { en.until = later(en.until, time.Now().Add(ttl+forgetAfter)) }

// read returns the lease of id, if it was granted, and the last proposal; zero values if there is
// none.
func (l *ledger) read(id lockinfo.LeaseID) (tenure, proposal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if en := l.entries[id]; en != nil {
		return en.lease, en.latest
	}
	return tenure{}, proposal{}
}

// propose records a proposal that is about to be sent; its token is greater than all earlier ones
// for this lease ID. It is recorded first, so that a concurrent release covers it.
func (l *ledger) propose(en *entry, p proposal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	en.latest = p
}

// grant records that the lease of id is live and was just given t.ttl.
func (l *ledger) grant(id lockinfo.LeaseID, t tenure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	en := l.entryLocked(id)
	en.lease = t
	en.keep(t.ttl)
}

// since returns how long ago the lease was granted, as members count it; 0 if that is
// not known.
func (t tenure) since() time.Duration {
	if t.granted.IsZero() {
		return 0
	}
	return time.Since(t.granted).Truncate(time.Millisecond)
}

// end records that the lease of id has ended.
func (l *ledger) end(id lockinfo.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if en := l.entries[id]; en != nil {
		en.lease = tenure{}
	}
}

// guess returns a proposal for name, at least least, that is probably above all counters and near
// all clocks. It is based on the members' last answers, or on this machine's clock, which need not
// be right (INVARIANT I8: the members decide).
func (l *ledger) guess(name string, least uint64) proposal {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.sweep(now)
	clock := uint64(max(now.UnixMicro()+l.ahead, 2))
	known := l.counters[name]
	// Follow a counter that is ahead of the local clock, so that one round is enough, unless
	// MinToken or this lease ID requires a much greater token.
	if next := known.token + 1; next > clock && next+uint64(guessLead.Microseconds()) >= least {
		return proposal{token: even(max(next, least)), lead: known.lead}
	}
	return proposal{token: even(max(clock, least)), lead: guessLead}
}

// learn records a member's counter, and how far ahead of its clock the next token may be. A counter
// that the local clock has passed is useless.
func (l *ledger) learn(name string, counter uint64, lead time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if counter > l.counters[name].token && int64(counter) > time.Now().UnixMicro()+l.ahead {
		l.counters[name] = proposal{token: counter, lead: lead}
	}
}

// adjust records the time on a member's clock after a guess was too far off.
func (l *ledger) adjust(clock uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead = int64(clock) - time.Now().UnixMicro()
}

// sweep deletes old entries, at most once a minute.
func (l *ledger) sweep(now time.Time) {
	if now.Before(l.sweepAt) {
		return
	}
	l.sweepAt = now.Add(time.Minute)
	maps.DeleteFunc(l.entries, func(_ lockinfo.LeaseID, en *entry) bool {
		return now.After(en.until) && len(en.turn) == 0 // and no caller is about to use it
	})
	maps.DeleteFunc(l.counters, func(_ string, counter proposal) bool {
		return int64(counter.token) <= now.UnixMicro()+l.ahead
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
