package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// ScheduleSuffix follows the name of a schedule in the name of its second lock. The
// replica that leads holds that lock while it waits for the scheduled times, and the
// others queue for it.
const ScheduleSuffix = "@schedule"

const (
	defaultStartWithin = time.Minute
	defaultForgetAfter = 400 * 24 * time.Hour
	everyPause         = 100 * time.Millisecond // a replica that has released the schedule pauses this long
	everyLongestPause  = time.Second
)

// EveryOptions are the options of Client.Every. Nil is default; a zero field is default. All
// replicas should give the same.
type EveryOptions struct {
	// TTL is how long a replica that has died keeps its run, or the schedule between two
	// runs. Default: Options.TTL.
	TTL time.Duration

	// MaxHold, StallAfter, Reason and Labels hold for each run, as in AcquireOptions.
	MaxHold    time.Duration
	StallAfter time.Duration
	Reason     string
	Labels     map[string]string

	// StartWithin is how late a run may begin. A run that does not succeed is tried again
	// until this long after its scheduled time, and is missed then. It should exceed TTL,
	// so that another replica can take over from a dead one, and the differences between
	// the replicas' clocks. Default: twice the TTL, and at least 1 minute.
	StartWithin time.Duration

	// CatchUp runs each scheduled time in order, even if the next one is due already,
	// unless it is later than StartWithin allows. Without CatchUp only the latest is run,
	// and earlier ones are missed.
	CatchUp bool

	// MaxAttempts bounds how often a run is begun until it succeeds, by all replicas
	// together. After the last attempt it is missed. Zero: StartWithin alone bounds it.
	MaxAttempts int

	// ForgetAfter is how long after the last run the store forgets the schedule. It must
	// be longer than the time between two runs. Default: 400 days.
	ForgetAfter time.Duration

	// Failed is called when a run of this replica has failed, and when the replica has
	// released the schedule for another reason. Default: none.
	Failed func(err error)

	// Missed is called with missed runs, by the replica that recorded them. Default:
	// none.
	Missed func(MissedRuns)

	clock func() time.Time // for tests; nil: time.Now
}

// An EveryRun is one run of a schedule, as its fn sees it.
type EveryRun struct {
	Name      string
	Scheduled time.Time // when it is due, in UTC
	Previous  time.Time // the scheduled time of the last run that was done; zero if there was none
	Attempt   int       // 1 for the first attempt; every attempt counts, however it ends
	Lease     *Lease    // of the lock of this name; its Token grows from run to run
}

// Key names the run, such as "reports/nightly@2026-11-21T03:00Z". It is the same on all replicas,
// and the same as the key of OnceOptions.Scheduled. Pass it to services that recognise repeats by a
// key.
func (r EveryRun) Key() string { return runKey(r.Name, r.Scheduled) }

// Every runs fn once for each time of a schedule, however many replicas call it, until
// ctx ends.
//
// One replica leads: it waits for the next time, by its own clock, runs fn under the
// lock of this name, and records the scheduled time as done in the step that ends the
// lease. The others wait in the queue of the lock name + "@schedule", and one of them
// leads as soon as the leader stops, or when its TTL ends if it dies. The store's
// record decides which times are still due, and not the leader or its clock: each
// scheduled time is done by one run or is missed, and either is recorded once.
// Records.Schedule returns the record.
//
// The context of fn ends when ctx does and when the lease of the run is lost, with a
// cause that is ErrLost. fn must then stop.
//
//   - fn returns nil: the run is done.
//   - fn returns an error: the run is tried again, by the next replica if there is one,
//     after a pause of 1 second at first and 1 minute at most, until it is too late or
//     the next one is due; see EveryOptions.StartWithin, CatchUp and MaxAttempts.
//   - ctx ends, and fn returns an error: another replica tries again at once. That
//     attempt does not count.
//   - The lease is lost, or the process dies: another replica tries again when the lease
//     has ended, after the same pause. So a run may have begun, and have worked in part,
//     more than once. The attempt counts, because it was recorded before fn was called.
//   - fn panics: the attempt is recorded as failed, and the panic goes on.
//
// Runs of one name never overlap: one that takes longer than the schedule's period
// delays the next.
//
// Every returns ctx's error when ctx has ended, and otherwise an error that a retry
// would meet again: ErrInvalid, ErrPermission, ErrKindMismatch, ErrUnsupported,
// ErrDeadlock, ErrClosed. If the store does not answer or fn fails, Every tries again.
func (c *Client) Every(ctx context.Context, name string, schedule Schedule, opts *EveryOptions, fn func(ctx context.Context, run EveryRun) error) error {
	s, err := newScheduler(ctx, c, name, schedule, opts)
	if err == nil && fn == nil {
		err = fmt.Errorf("%w fn: it is nil", ErrInvalid)
	}
	if err != nil {
		return opError("every", name, err)
	}
	s.fn = fn
	err = c.Lead(ctx, name+ScheduleSuffix, &LeadOptions{
		Acquire: AcquireOptions{TTL: s.opts.TTL, Reason: s.opts.Reason, Labels: s.opts.Labels},
		Pause:   everyPause, LongestPause: everyLongestPause,
		Failed: func(err error, _ time.Duration) { s.opts.Failed(err) },
	}, s.lead)
	switch {
	case s.verdict() != nil:
		return opError("every", name, s.verdict())
	case ctx.Err() != nil:
		return opError("every", name, ask.ContextError(ctx))
	}
	return err
}

func newScheduler(ctx context.Context, c *Client, name string, schedule Schedule, opts *EveryOptions) (*scheduler, error) {
	o, err := opts.resolve(c)
	if err != nil {
		return nil, err
	}
	recorder, err := c.recorder(name)
	if err != nil {
		return nil, err
	}
	if schedule == nil {
		return nil, fmt.Errorf("%w schedule: it is nil", ErrInvalid)
	}
	s := &scheduler{ctx: ctx, client: c, recorder: recorder, name: name, opts: o}
	s.times = timetable{schedule: schedule, opts: &s.opts}
	s.times.after(s.now()) // to report an invalid schedule at once
	return s, cmp.Or(s.times.err, driver.CheckName(name+ScheduleSuffix))
}

// Check returns an error that wraps ErrInvalid if an option is out of range.
func (o *EveryOptions) Check() error {
	_, err := o.resolve(nil)
	return err
}

// resolve returns a copy of o with the defaults filled in, or an error that wraps
// ErrInvalid.
func (o *EveryOptions) resolve(c *Client) (EveryOptions, error) {
	e := *cmp.Or(o, &EveryOptions{})
	if c != nil {
		e.TTL = cmp.Or(e.TTL, c.opts.TTL)
	}
	e.StartWithin = cmp.Or(e.StartWithin, max(defaultStartWithin, 2*e.TTL))
	e.ForgetAfter = ceilMS(cmp.Or(e.ForgetAfter, defaultForgetAfter))
	if e.clock == nil {
		e.clock = time.Now
	}
	if e.Failed == nil {
		e.Failed = func(error) {}
	}
	if e.Missed == nil {
		e.Missed = func(MissedRuns) {}
	}
	switch {
	case e.StartWithin < 0:
		return e, fmt.Errorf("%w StartWithin %s: it is negative", ErrInvalid, e.StartWithin)
	case e.MaxAttempts < 0:
		return e, fmt.Errorf("%w MaxAttempts %d: it is negative; zero tries again for StartWithin", ErrInvalid, e.MaxAttempts)
	case e.ForgetAfter < MinTTL || e.ForgetAfter > MaxRetention:
		return e, fmt.Errorf("%w ForgetAfter %s: want %s to %s", ErrInvalid, e.ForgetAfter, MinTTL, MaxRetention)
	}
	return e, e.acquire().Check()
}

// acquire returns the options of the lease of a run.
func (o *EveryOptions) acquire() *AcquireOptions {
	return &AcquireOptions{TTL: o.TTL, MaxHold: o.MaxHold, StallAfter: o.StallAfter, Reason: o.Reason, Labels: o.Labels}
}
