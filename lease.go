package holdfast

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Lease is possession of a lock for a time. Its holder must call Release,
// and must stop what the lock protects when Context ends.
//
// A lease that is lost stays lost. All methods are safe for concurrent use.
type Lease struct {
	client *Client
	name   string
	id     LeaseID
	token  uint64
	holder Holder
	opts   AcquireOptions // resolved
	began  instant        // before the granting request was sent
	outer  *Lease         // lease of the context that acquired this one, or nil
	cancel bool           // an old acquire request of this ID may still be under way

	ctx context.Context // ends with the lease
	end context.CancelCauseFunc

	// slot is the lease's place in the keeper's heap. keeper.mu guards it.
	slot slot

	mu       sync.Mutex // guards the rest; taken after keeper.mu where both are
	state    state
	lost     error         // why, if it was lost
	deadline instant       // only ever moves later
	renewAt  time.Time     // when the keep-alive sends the next renewal
	progress time.Time     // of the last call of Progress
	stalled  bool          // a renewal was due but Progress was overdue
	final    bool          // the deadline is as late as MaxHold allows
	inflight int           // requests under way that would lengthen the lease
	landed   chan struct{} // closed when inflight is 0 after Release has begun
	released chan struct{} // closed when Release is done
	result   error         // of Release; valid when released is closed
}

// A state is a stage in the life of a lease. It only grows.
type state int

const (
	stateHeld state = iota
	stateLost
	stateReleasing // Release has begun; the lease may have been lost before
)

// newLease makes the lease that was granted to a.
func (c *Client) newLease(a *acquisition, sent instant, token uint64) *Lease {
	l := &Lease{
		client: c, name: a.req.Name, id: a.req.LeaseID, token: token, holder: a.req.Holder,
		opts: a.opts, began: sent, outer: a.outer, cancel: a.uncertain,
		deadline: sent.add(trusted(a.opts.TTL)),
		progress: sent.mono,
		final:    a.opts.MaxHold == a.opts.TTL,
		landed:   make(chan struct{}),
		released: make(chan struct{}),
	}
	l.renewAt = l.renewalDueLocked()
	l.ctx, l.end = context.WithCancelCause(context.WithValue(a.values, heldKey{}, l))
	c.keeper.update(l)
	return l
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.name }

// ID returns the lease ID. Whoever knows it can release the lease.
func (l *Lease) ID() LeaseID { return l.id }

// Token returns the fencing token: greater than that of every earlier lease of
// the name, and the same for the life of this one. Hand it to the resource,
// which must refuse every token smaller than the greatest it has seen.
func (l *Lease) Token() uint64 { return l.token }

// Holder returns what the store tells others about this lease.
func (l *Lease) Holder() Holder { return l.holder }

// Context ends when the lease does: with a cause that is ErrLost, at Deadline
// at the latest, or with context.Canceled when Release begins. It carries the
// values of the context that the lease was acquired under, but not its end.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline returns the local instant until which the lease may be trusted. It
// moves later with each renewal, never earlier, and is never later than the
// expiry in the store, if that counts time at the rate that this machine does.
// Compare it with time.Now only; as a wall-clock time it means nothing.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline.mono
}

// Remaining returns how long the lease may be trusted from now on without
// another renewal; 0 if it is over.
func (l *Lease) Remaining() time.Duration {
	if !l.Valid() {
		return 0
	}
	return max(0, time.Until(l.Deadline()))
}

// Valid reports whether the lease may be trusted at this instant, by the
// monotonic and, where the system has one, the boot-time clock: it is false on
// the first call after a pause or a suspension that was too long, even before
// Context ends. It sends nothing. A pause right after it goes unnoticed, and a
// virtual machine that was stopped as a whole notices nothing at all; see
// Verify and Token.
func (l *Lease) Valid() bool {
	now := l.client.now()
	l.mu.Lock()
	isHeld, over := l.state == stateHeld, now.reached(l.deadline)
	l.mu.Unlock()
	if isHeld && over {
		l.lose(l.expiredCause())
	}
	return isHeld && !over
}

// Verify asks the store whether the lease is live. It returns ErrLost if it is
// not; the lease then is lost for good. Any other error says that the store
// could not be asked, and changes nothing.
func (l *Lease) Verify(ctx context.Context) error {
	if !l.Valid() {
		return opError("verify", l.name, l.lostError())
	}
	ctx, cancel := l.client.requestContext(ctx)
	defer cancel()
	lock, err := l.client.engine.Inspect(ctx, l.name)
	if err != nil {
		return opError("verify", l.name, harmless(ctx, err))
	}
	for _, h := range lock.Holders {
		if h.LeaseID == l.id && !h.Released {
			return nil
		}
	}
	l.lose(errTakenAway)
	return opError("verify", l.name, l.lostError())
}

// Progress tells the keep-alive that the work goes on; see
// AcquireOptions.Progress.
func (l *Lease) Progress() {
	now := time.Now()
	l.mu.Lock()
	l.progress = now
	resume := l.stalled
	if resume {
		l.stalled, l.renewAt = false, now
	}
	l.mu.Unlock()
	if resume {
		l.client.keeper.update(l)
	}
}

// The causes of a loss.
var (
	errExpired   = fmt.Errorf("%w: it could not be renewed before its deadline", ErrLost)
	errTakenAway = fmt.Errorf("%w: the store says that it is not live", ErrLost)
	errMaxHold   = fmt.Errorf("%w: %w", ErrLost, ErrMaxHold)
	errStalled   = fmt.Errorf("%w: %w", ErrLost, ErrStalled)
	errReleased  = fmt.Errorf("%w: it was released", ErrLost)
)

// expiredCause says why the deadline passed.
func (l *Lease) expiredCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.final:
		return errMaxHold
	case l.stalled:
		return errStalled
	}
	return errExpired
}

// lose ends the lease without a release. Loss is final: a renewal that is
// answered later changes nothing. It does nothing if the lease has ended.
func (l *Lease) lose(cause error) {
	l.mu.Lock()
	if l.state != stateHeld {
		l.mu.Unlock()
		return
	}
	l.state, l.lost = stateLost, cause
	l.mu.Unlock()
	l.client.keeper.remove(l)
	l.end(cause)
	l.client.opts.Observer(Event{Kind: Lost, Name: l.name, LeaseID: l.id, Token: l.token, Took: time.Since(l.began.mono), Err: cause})
}

// lostError returns why the lease is over.
func (l *Lease) lostError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return errReleased
}

// A heldKey is the key of the innermost *Lease of a context.
type heldKey struct{}

// LeaseFromContext returns the lease that ctx belongs to: the context of a
// lease, of the work in Do and Call, or one derived from either.
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	l := heldUnder(ctx)
	return l, l != nil
}

func heldUnder(ctx context.Context) *Lease {
	l, _ := ctx.Value(heldKey{}).(*Lease)
	return l
}

// holds reports whether l, or a lease that it was acquired under, is live and
// would block the same caller's acquire of name for ever. l may be nil.
func (l *Lease) holds(engine driver.Engine, name string, mode Mode) bool {
	for ; l != nil; l = l.outer {
		compatible := mode != Exclusive && mode == l.opts.Mode
		if l.name == name && l.client.engine == engine && !compatible && l.Valid() {
			return true
		}
	}
	return false
}

// isLost reports whether err is, among others, the loss of a lease.
func isLost(err error) bool { return errors.Is(err, ErrLost) }
