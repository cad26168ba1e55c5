package holdfast

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/internal/schedule"
	"github.com/holdfast-locks/holdfast/internal/turns"
)

// A Lease is possession of a lock for a time. Its holder must call Release, and must stop the
// work that the lock protects when Context ends.
//
// A lease that is lost stays lost. All methods are safe for concurrent use.
type Lease struct {
	client *Client
	name   string
	id     LeaseID
	token  uint64
	acked  int
	holder *Holder       // never changes; mostly the client's own
	asked  Mode          // the mode in which it was acquired
	outer  *Lease        // the lease of the context that acquired this one, or nil
	streak *turns.Streak // nil if the store has a queue
	cohort *cohort       // the cohort in which it may be handed on, or nil

	values context.Context // the context of the acquire: Context has its values

	entry schedule.Entry[*Lease] // in the timetable of the lease keeper, whose mutex guards it

	cancel bool // an old acquire request of this ID may still be under way

	mu       sync.Mutex // guards the rest; taken after leaseKeeper.mu where both are held
	state    state
	single   bool   // it must not be handed on any more
	closed   bool   // the client was closed while it was held
	next     *Lease // the turn after this one, if it was handed on
	lost     error  // why it was lost, or nil
	mode     Mode
	term     term
	ctx      context.Context // what Context returns; nil until it is needed
	end      context.CancelCauseFunc
	landed   chan struct{} // closed when no renewal is under way; nil unless Release waits for that
	released chan struct{} // closed when Release is done; nil if no call waits for that
	result   error         // the result of Release; valid in stateReleased
	reported *leaseReport  // what the Observer knows of the lease, or nil
}

// A state is a stage in the life of a lease. It only grows.
type state uint8

const (
	stateHeld state = iota
	stateLost
	stateReleasing // Release has begun; the lease may have been lost before
	stateReleased  // Release is done
)

// newLease makes the lease that was granted to a. If this client has a lease of the name with a
// greater token it returns that one, as ahead, instead. A lease with a smaller token is lost.
// acked is how many replicas have acknowledged the grant.
func (c *Client) newLease(a *acquisition, token uint64, acked int, t term) (l, ahead *Lease) {
	l = &Lease{
		client: c, name: a.req.Name, id: a.req.LeaseID, token: token, acked: acked, holder: a.holder(),
		asked: a.req.Mode, outer: a.outer, cancel: a.uncertain, streak: c.turns.Granted(a.req.Name),
		mode: a.req.Mode, term: t, values: a.values, cohort: a.leads,
	}
	l.entry.Item = l
	behind, ahead := c.leases.add(l)
	if ahead != nil {
		return nil, ahead
	}
	if behind != nil {
		behind.lose(errOvertaken)
	}
	return l, nil
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.name }

// ID returns the lease ID. A client that knows it can release the lease.
func (l *Lease) ID() LeaseID { return l.id }

// InCohort reports whether the client may hand the lease on to another of its callers, with the
// same lease ID and the next token; see Options.Cohorts.
func (l *Lease) InCohort() bool { return l.cohort != nil }

// Token returns the fencing token: greater than the token of every earlier lease of
// the name, and the same for the life of this one. Hand it to the resource,
// which must refuse every token smaller than the greatest it has seen.
func (l *Lease) Token() uint64 { return l.token }

// Acked returns how many replicas of the store had acknowledged the acquire when
// it was answered; 0 without AcquireOptions.Replicas.
func (l *Lease) Acked() int { return l.acked }

// Mode returns the mode in which the lock is held: as it was acquired, or
// Shared after Downgrade.
func (l *Lease) Mode() Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode
}

// Holder returns the holder of this lease as the store shows it to others. For an adopted
// lease it is the holder of this client.
func (l *Lease) Holder() Holder { return *l.holder }

// Context ends with the lease. Its cause is ErrLost after a loss, at Deadline at
// the latest, context.Canceled when Release begins, and ErrLeft after Leave. It
// has the values of the context of the acquire, but not its end.
func (l *Lease) Context() context.Context { return (*leaseContext)(l) }

// Deadline returns the local instant until which the lease may be trusted. It
// moves later with each renewal, earlier only after the machine was suspended
// or while its clock is slewed, and is never later than the expiry in the store, if
// the store's clock and this machine's differ in rate by less than 10 %. Compare it with time.Now only; as a
// wall-clock time it means nothing.
func (l *Lease) Deadline() time.Time {
	return l.present().deadline.Mono
}

// present returns the present term.
func (l *Lease) present() term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// Remaining returns how long the lease may be trusted from now on without
// another renewal; 0 if it has ended.
func (l *Lease) Remaining() time.Duration {
	if !l.Valid() {
		return 0
	}
	return l.present().remaining(l.client.now())
}

// Valid reports whether the lease may be trusted at this instant, by the
// monotonic and, where the system has one, the boot-time clock: it is false on
// the first call after a pause or a suspension that was too long, even before
// Context ends. It sends nothing. A pause right after it goes unnoticed, and a
// virtual machine that was stopped as a whole notices nothing at all; see
// Verify and Token.
func (l *Lease) Valid() bool {
	return l.validAt(l.client.now())
}

// validAt is Valid, as of now.
func (l *Lease) validAt(now instant) bool {
	if l.heldAt(now) {
		return true
	}
	l.lose(l.present().cause()) // does nothing if the lease has ended already
	return false
}

// Heartbeat tells the keep-alive that the work goes on; see
// AcquireOptions.StallAfter.
func (l *Lease) Heartbeat() {
	now := time.Now()
	l.mu.Lock()
	t, resumed := l.term.beat(now)
	l.term = t
	l.mu.Unlock()
	if resumed {
		l.client.leases.update(renewal{lease: l})
	}
}

// heldAt reports whether the lease may be trusted at now. Unlike Valid it does not end the
// lease.
func (l *Lease) heldAt(now instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == stateHeld && !l.term.over(now)
}
