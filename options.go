package holdfast

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/self"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The limits of durations and texts in options. A value outside them is
// ErrInvalid.
const (
	MinTTL = 10 * time.Millisecond
	MaxTTL = 30 * 24 * time.Hour // also of LockDelay, MinHold, MaxHold, StallAfter

	MaxNameLen = driver.MaxNameLen // bytes of the name of a lock
	MaxNames   = driver.MaxBatch   // of one AcquireAll
	MaxLimit   = lockinfo.MaxLimit // of Permits

	maxReplicas = 100
)

const (
	defaultTTL            = 30 * time.Second
	defaultRequestTimeout = 5 * time.Second
)

// Options configure a Client. Nil is default; a zero field is default.
type Options struct {
	// TTL is the length of possession without renewal, for leases whose
	// AcquireOptions give none. A dead process leaves its locks closed for
	// this long. Default: 30 seconds.
	TTL time.Duration

	// RequestTimeout bounds how long one request may wait for the store's
	// answer before it is repeated or given up. Default: 5 seconds.
	RequestTimeout time.Duration

	// Holder describes the holder of a lock for people. If it has no Host, PID, User and Label,
	// New fills in Host, PID and User, and an empty Program with the base name of this
	// program, without its arguments. With Person New fills in only Host and User. The User is
	// from the system's file of users, or a number: New queries no directory service. Reason
	// and Labels are set for each acquire.
	Holder Holder

	// Observer receives the events of locks. Default: none.
	Observer Observer

	// Logger receives warnings about a lost lease, a lock that could not be released, and
	// an Observer that panics or misses events. The client does not wait for it. For
	// silence use slog.New(slog.DiscardHandler). Default: slog.Default at the time.
	Logger *slog.Logger

	// Cohorts lets the callers of Acquire, Do and Call that wait for one name and TTL share a
	// place in the queue of the store, and a lease. When a caller releases the lease, the client
	// hands it on to the caller that has waited longest: three times at most, and within 20 ms of
	// the grant. It then releases the lease in the store, and the callers that still wait queue
	// there again. Cohorts are for short work under much contention. The store's queue then
	// orders clients, and each client serves its callers in the order of their calls.
	//
	// Each caller has a Lease of its own, with its own context and fencing token. Other
	// processes see one lease: Inspect, History and Break know the token of its first turn
	// only, and the LeaseID is the same for all turns. A turn may begin with half of its TTL. A
	// transaction cannot hold such a lease (pglock.Hold).
	//
	// An acquire has a place of its own with another Mode than Exclusive, or with MinHold, MaxHold,
	// StallAfter, LockDelay, Replicas, MinToken, WholeTTL, Reason, Labels or OnWait. Acquires of
	// AcquireAll, Once, Every and Lead are never part of a cohort, and neither are acquires on an
	// engine without a queue. TryAcquire does not wait for a turn. Default: off.
	Cohorts bool

	// SharedEngine makes Close and Shutdown leave the engine open, because another
	// client uses it; the caller closes it after all of them. Default: they close it.
	SharedEngine bool
}

// AcquireOptions are the options of one acquisition. Nil is default; a zero
// field is default.
type AcquireOptions struct {
	// Mode is Exclusive (default), Shared, or a semaphore such as Permits(2, 5). A
	// mode that the engine lacks is ErrUnsupported.
	Mode Mode

	// TTL overrides Options.TTL; 10 ms to 30 days, or to the engine's
	// Capabilities.MaxTTL, which bounds MinHold and TTL with LockDelay too.
	TTL time.Duration

	// MaxWait bounds how long Acquire waits for the lock; it then returns a
	// *HeldError. However short it is, the first request for a name may take
	// Options.RequestTimeout: so a free lock is taken, and a *HeldError names the
	// holder. Zero: until the context ends. TryAcquire and TryDo ignore it.
	MaxWait time.Duration

	// WholeTTL makes Acquire return no lease that has less than its TTL. One that another
	// holder handed over lasts for a few seconds at first, the waiter TTL; the client
	// requests the rest in the background. With WholeTTL it does so before Acquire returns,
	// as part of the wait, with one request more: for work that must not begin without the
	// time to stop it before the lease ends. If the lease is lost by then, the wait goes on.
	WholeTTL bool

	// KeepAlive is whether the client extends the lease in the background
	// (default), or the caller with Extend.
	KeepAlive KeepAlive

	// MinHold keeps the name closed for at least this long from the
	// acquisition, even if the lease is released earlier: a job that is done in a
	// second does not run again on a replica whose clock is slow.
	MinHold time.Duration

	// MaxHold ends the lease this long after the acquisition at the latest, with
	// ErrMaxHold. The holder must be done by then. Its deadline is earlier by up
	// to a tenth of the last TTL, as always. Zero: no bound.
	MaxHold time.Duration

	// StallAfter stops renewing once Lease.Heartbeat has not been called for
	// this long, so that a stuck worker loses the lock, with ErrStalled.
	// Zero: off.
	StallAfter time.Duration

	// MinToken is less than the fencing token. A holder whose token was refused
	// as stale acquires again, with the token that the resource has seen.
	MinToken uint64

	// LockDelay keeps the lock closed for this much longer after a lease that
	// has expired, for resources that cannot check tokens. Release still frees
	// it at once.
	LockDelay time.Duration

	// Replicas makes an acquire count only when this many replicas of the store
	// have acknowledged it; otherwise it is released again, and the error is
	// ErrNotReplicated. A failover can still lose the lease: renewals do not
	// wait for replicas, another replica may take over, and a replica whose
	// clock is ahead may end the lease early. Only the token is safe then. An
	// acquire takes a round trip to the replicas longer.
	Replicas int

	// Reason and Labels show people why the lock is held.
	Reason string
	Labels map[string]string

	// OnWait receives the state of the wait, to be shown to people: when an acquire begins
	// to wait, because another holder has the lock or the store does not answer, and at each
	// change of the state, except of its times. It is not called when the wait ends, nor
	// by TryAcquire. It runs on the goroutine that acquires: the acquire keeps its place
	// during a call, but does not notice a grant, and may have to request the lock again.
	// If it panics, the panic goes through Acquire, which leaves no lease in the store. It
	// must not call methods of the Client. Default: none.
	OnWait func(WaitState)
}

// KeepAlive is whether the client or the caller extends a lease.
type KeepAlive int

const (
	KeepAliveOn  KeepAlive = iota // the client, in the background
	KeepAliveOff                  // the caller, with Lease.Extend
)

// A Mode determines which leases of a name are compatible: Exclusive, Shared, or what
// Permits returns. Modes are compared with ==. Its methods Permits and Limit return the
// numbers of function Permits, Kind and String name it, and Check refuses numbers out
// of range.
type Mode = lockinfo.Mode

const (
	Exclusive = lockinfo.Exclusive // one lease
	Shared    = lockinfo.Shared    // any number of shared leases, or one exclusive
)

// Permits returns the mode of a semaphore's lease that takes n of limit permits, such as
// one of three workers: Permits(1, 3). The leases of the name have at most limit permits
// together. All users of a name must give the same limit at a time, else the error is
// ErrKindMismatch. It is ErrInvalid if n is below 1 or above limit, or if limit is
// above MaxLimit.
func Permits(n, limit int) Mode { return lockinfo.Permits(n, limit) }

// A Holder tells people who holds a lock: its Host, PID, User, Program and Label, the
// Reason and Labels of the acquisition, whether it is a Person, and whether it does
// do-once work (Once, with its Fingerprint).
type Holder = lockinfo.Holder

// A LeaseID names one acquisition. A client that knows it can release the lease.
type LeaseID = lockinfo.LeaseID

// withDefaults returns a copy with the defaults filled in.
func (o *Options) withDefaults() Options {
	c := *cmp.Or(o, &Options{})
	c.TTL, c.RequestTimeout = cmp.Or(c.TTL, defaultTTL), cmp.Or(c.RequestTimeout, defaultRequestTimeout)
	if h := c.Holder; h.Host == "" && h.PID == 0 && h.Label == "" && h.User == "" {
		c.Holder = self.Holder(h)
	}
	return c
}

// check returns an error that wraps ErrInvalid if an option is out of range.
func (o *Options) check() error {
	return cmp.Or(checkTTL("Options.RequestTimeout", o.RequestTimeout), checkTTL("Options.TTL", o.TTL))
}

// resolve returns a copy of o with the defaults of the client filled in, and
// durations rounded up to whole milliseconds, or an error that wraps
// ErrInvalid.
func (o *AcquireOptions) resolve(client *Options) (AcquireOptions, error) {
	c := *cmp.Or(o, &AcquireOptions{})
	c.TTL = cmp.Or(c.TTL, client.TTL)
	if err := c.check(); err != nil {
		return c, err
	}
	if c.MaxHold > 0 {
		c.MaxHold = c.MaxHold.Truncate(time.Millisecond)
		c.TTL = min(c.TTL, c.MaxHold)
	}
	c.TTL, c.LockDelay, c.MinHold = ceilMS(c.TTL), ceilMS(c.LockDelay), ceilMS(c.MinHold)
	return c, nil
}

// Check returns an error that wraps ErrInvalid if an option is out of range,
// as an acquire would: for programs that read options long before they use
// them.
func (o *AcquireOptions) Check() error {
	if o == nil {
		return nil
	}
	return cmp.Or(o.check(), driver.CheckHolder(Holder{Reason: o.Reason, Labels: o.Labels}))
}

// check is Check without the holder's texts. holderFor checks them with the rest of the holder.
func (o *AcquireOptions) check() error {
	if err := o.checkTimes(); err != nil {
		return err
	}
	switch {
	case o.KeepAlive != KeepAliveOn && o.KeepAlive != KeepAliveOff:
		return fmt.Errorf("%w KeepAlive %d", ErrInvalid, o.KeepAlive)
	case o.KeepAlive == KeepAliveOff && o.StallAfter > 0:
		return fmt.Errorf("%w StallAfter %s: it needs the keep-alive, which is off", ErrInvalid, o.StallAfter)
	case o.Replicas < 0 || o.Replicas > maxReplicas:
		return fmt.Errorf("%w Replicas %d: want 0 to %d", ErrInvalid, o.Replicas, maxReplicas)
	case o.MinToken >= driver.MaxToken:
		return fmt.Errorf("%w MinToken %d: no token is greater", ErrInvalid, o.MinToken)
	}
	return o.Mode.Check()
}

// checkTimes returns an error that wraps ErrInvalid if one of the durations is out of range.
func (o *AcquireOptions) checkTimes() error {
	if o.TTL != 0 {
		if err := checkTTL("TTL", o.TTL); err != nil {
			return err
		}
	}
	if o.MaxWait < 0 {
		return fmt.Errorf("%w MaxWait %s: it is negative; zero waits until the context ends", ErrInvalid, o.MaxWait)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"MinHold", o.MinHold}, {"MaxHold", o.MaxHold}, {"StallAfter", o.StallAfter}, {"LockDelay", o.LockDelay}} {
		if d.value != 0 && (d.value < MinTTL || d.value > MaxTTL) {
			return fmt.Errorf("%w %s %s: want %s to %s, or zero", ErrInvalid, d.name, d.value, MinTTL, MaxTTL)
		}
	}
	switch {
	case o.TTL+o.LockDelay > MaxTTL:
		return fmt.Errorf("%w LockDelay %s: TTL and LockDelay together exceed %s", ErrInvalid, o.LockDelay, MaxTTL)
	case o.MaxHold > 0 && o.MinHold > o.MaxHold:
		return fmt.Errorf("%w MinHold %s: it exceeds MaxHold %s", ErrInvalid, o.MinHold, o.MaxHold)
	}
	return nil
}

// checkTTL returns an error that wraps ErrInvalid unless d can be a TTL.
func checkTTL(what string, d time.Duration) error {
	if d < MinTTL || d > MaxTTL {
		return fmt.Errorf("%w %s %s: want %s to %s", ErrInvalid, what, d, MinTTL, MaxTTL)
	}
	return nil
}

// ceilMS rounds up to whole milliseconds, in which stores count.
func ceilMS(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
