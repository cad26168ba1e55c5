package holdfast

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The limits of durations and texts in options. A value outside them is
// ErrInvalid.
const (
	MinTTL = 10 * time.Millisecond
	MaxTTL = 30 * 24 * time.Hour // also of LockDelay, MinHold, MaxHold, Progress

	MaxNameLen = driver.MaxNameLen // bytes of the name of a lock
	MaxNames   = driver.MaxBatch   // of one AcquireAll
	MaxLimit   = driver.MaxLimit   // permits of a Semaphore

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

	// Holder tells people who holds a lock. If it has no Host, PID, User and Label
	// New fills them in but for the Label, and the Program: the base name of this
	// program, without its arguments, unless it is given. The User is that of the
	// system's file of users, or a number: no directory service is asked. With
	// Person it is Host and User. Reason and Labels are set for each acquisition.
	Holder Holder

	// Observer is told what happens to locks. Default: none.
	Observer Observer

	// Logger is where the client logs what somebody should know even if nobody has
	// asked: a lease that is lost, a lock that it could not give back, and an Observer
	// that panics or misses events; all are warnings. It is not waited for. For silence
	// use slog.New(slog.DiscardHandler). Default: slog.Default at the time.
	Logger *slog.Logger
}

// AcquireOptions are the options of one acquisition. Nil is default; a zero
// field is default.
type AcquireOptions struct {
	// Mode is Exclusive by default. Other modes are ErrUnsupported unless the
	// engine has them. Limit is the number of permits of a Semaphore, up to
	// MaxLimit: all who use it at a time must say the same. Permits is
	// how many of them this acquisition takes; zero is 1.
	Mode    Mode
	Limit   int
	Permits int

	// TTL overrides Options.TTL; 10 ms to 30 days, or what the engine's
	// Capabilities.MaxTTL says, which bounds MinHold and TTL with LockDelay too.
	TTL time.Duration

	// Wait bounds how long Acquire waits for the lock; it then returns a
	// *HeldError. However short it is, the first request for a name may take
	// Options.RequestTimeout: a free lock is taken, and of one that is held it is
	// known who has it. Zero: until the context ends. TryAcquire and TryDo ignore
	// it.
	Wait time.Duration

	// WholeTTL makes Acquire return no lease that has less than its TTL. One that
	// another holder handed over lasts for a few seconds at first, the waiter TTL;
	// the rest is asked for in the background. WholeTTL asks for it before Acquire
	// returns, as part of the wait, with one request more: for work that must be
	// stopped before the lease ends, and is not begun without the time for that.
	// If the lease is lost by then, the wait goes on.
	WholeTTL bool

	// KeepAlive says who extends the lease: the client in the background
	// (default), or the caller with Extend.
	KeepAlive KeepAlive

	// MinHold keeps the name closed for at least this long from the
	// acquisition, even if it is released earlier: a job that is done in a
	// second does not run again on a replica whose clock is behind.
	MinHold time.Duration

	// MaxHold ends the lease this long after the acquisition at the latest,
	// with ErrMaxHold. The holder must be done by then. Zero: no bound.
	MaxHold time.Duration

	// Progress stops renewing once Lease.Progress has not been called for
	// this long, so that a stuck worker loses the lock, with ErrStalled.
	// Zero: off.
	Progress time.Duration

	// MinToken makes the fencing token greater than it: a holder whose token
	// was refused as stale, by a resource that has seen MinToken, acquires
	// again with it.
	MinToken uint64

	// LockDelay keeps the lock of a holder that died or was cut off closed
	// for this much longer than the lease, for resources that cannot check
	// tokens. Release still frees it at once.
	LockDelay time.Duration

	// Replicas makes an acquire count only when this many replicas of the store
	// have acknowledged it; otherwise it is released again, and the error is
	// ErrNotReplicated. It narrows the gap in which a failover loses the lease,
	// and does not close it: renewals are not waited for, a replica that has
	// acknowledged may still not be the one that takes over, and one whose
	// clock is ahead may end the lease early. Only the token is safe then. An
	// acquire takes a round trip to the replicas longer.
	Replicas int

	// Reason and Labels tell people why the lock is held.
	Reason string
	Labels map[string]string

	// OnWait is told how the wait stands, for people who look on: when an acquire
	// begins to wait, because somebody has the lock or the store does not answer,
	// and whenever something of it changes but the times. It is not called when
	// the wait ends, nor by TryAcquire. It runs on the goroutine that acquires:
	// while it takes its time the place in the queue is kept, but the acquire does
	// not hear that it has the lock, and may have to ask for it again. If it panics,
	// the panic goes through Acquire, which leaves nothing behind. It must not call
	// methods of the Client. Default: none.
	OnWait func(WaitState)
}

// KeepAlive says who extends a lease.
type KeepAlive int

const (
	KeepAliveOn  KeepAlive = iota // the client, in the background
	KeepAliveOff                  // the caller, with Lease.Extend
)

// A Mode says which leases of a name are compatible.
type Mode = driver.Mode

const (
	Exclusive = driver.Exclusive // one lease
	Shared    = driver.Shared    // any number of shared leases, or one exclusive
	Semaphore = driver.Semaphore // leases with at most Limit permits together
)

// A Holder tells people who holds a lock: its Host, PID, User, Program and Label, the
// Reason and Labels of the acquisition, whether it is a Person, and whether it does
// do-once work (Once, with its Fingerprint).
type Holder = driver.Holder

// A LeaseID names one acquisition. Whoever knows it can release the lease.
type LeaseID = driver.LeaseID

// withDefaults returns a copy with the defaults filled in.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.TTL, c.RequestTimeout = cmp.Or(c.TTL, defaultTTL), cmp.Or(c.RequestTimeout, defaultRequestTimeout)
	if h := c.Holder; h.Host == "" && h.PID == 0 && h.Label == "" && h.User == "" {
		c.Holder = localHolder(h)
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
	var c AcquireOptions
	if o != nil {
		c = *o
	}
	c.TTL = cmp.Or(c.TTL, client.TTL)
	if err := c.check(); err != nil {
		return c, err
	}
	if c.MaxHold > 0 {
		c.MaxHold = c.MaxHold.Truncate(time.Millisecond)
		c.TTL = min(c.TTL, c.MaxHold)
	}
	if c.Mode == Semaphore {
		c.Permits = max(c.Permits, 1)
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

// check is Check but for what the holder says, which is checked with all the rest that
// it says.
func (o *AcquireOptions) check() error {
	if o.TTL != 0 {
		if err := checkTTL("TTL", o.TTL); err != nil {
			return err
		}
	}
	if o.Wait < 0 {
		return fmt.Errorf("%w Wait %s: it is negative; zero waits until the context ends", ErrInvalid, o.Wait)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"MinHold", o.MinHold}, {"MaxHold", o.MaxHold}, {"Progress", o.Progress}, {"LockDelay", o.LockDelay}} {
		if d.value != 0 && (d.value < MinTTL || d.value > MaxTTL) {
			return fmt.Errorf("%w %s %s: want %s to %s, or zero", ErrInvalid, d.name, d.value, MinTTL, MaxTTL)
		}
	}
	switch {
	case o.TTL+o.LockDelay > MaxTTL:
		return fmt.Errorf("%w LockDelay %s: TTL and LockDelay together exceed %s", ErrInvalid, o.LockDelay, MaxTTL)
	case o.MaxHold > 0 && o.MinHold > o.MaxHold:
		return fmt.Errorf("%w MinHold %s: it exceeds MaxHold %s", ErrInvalid, o.MinHold, o.MaxHold)
	case o.KeepAlive != KeepAliveOn && o.KeepAlive != KeepAliveOff:
		return fmt.Errorf("%w KeepAlive %d", ErrInvalid, o.KeepAlive)
	case o.KeepAlive == KeepAliveOff && o.Progress > 0:
		return fmt.Errorf("%w Progress %s: it needs the keep-alive, which is off", ErrInvalid, o.Progress)
	case o.Replicas < 0 || o.Replicas > maxReplicas:
		return fmt.Errorf("%w Replicas %d: want 0 to %d", ErrInvalid, o.Replicas, maxReplicas)
	case o.MinToken >= driver.MaxToken:
		return fmt.Errorf("%w MinToken %d: no token is greater", ErrInvalid, o.MinToken)
	}
	return o.checkMode()
}

func (o *AcquireOptions) checkMode() error {
	switch o.Mode {
	case Exclusive, Shared:
		if o.Limit != 0 || o.Permits != 0 {
			return fmt.Errorf("%w Limit %d, Permits %d: only a Semaphore has them", ErrInvalid, o.Limit, o.Permits)
		}
	case Semaphore:
		if o.Limit < 1 || o.Limit > driver.MaxLimit {
			return fmt.Errorf("%w Limit %d: want 1 to %d", ErrInvalid, o.Limit, driver.MaxLimit)
		}
		if o.Permits < 0 || o.Permits > o.Limit {
			return fmt.Errorf("%w Permits %d: want 1 to the Limit, %d, or zero for 1", ErrInvalid, o.Permits, o.Limit)
		}
	default:
		return fmt.Errorf("%w mode: %s", ErrInvalid, o.Mode)
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

// ceilMS rounds up to whole milliseconds, which is what stores count in.
func ceilMS(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
