package holdfast

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
)

// An Observer receives the events of locks, for metrics, traces and logs: soon, and in
// the order in which they happen, on a goroutine of its own. Whatever it does, no
// acquire, renewal, loss or release waits for it. An Event has the Time when
// it happened. Close waits until all events are delivered.
//
// If it blocks for so long that too many events are waiting, some are dropped; that, and
// a panic, are logged. Package observe lists the guarantees that remain. An Observer
// may call methods of the Client, except Close.
type Observer = observe.Observer

// An Event is one thing that happened; see package observe.
type Event = observe.Event

// An EventKind is what happened; see package observe for their order.
type EventKind = observe.Kind

// The kinds of events; package observe describes them.
const (
	Acquired      = observe.Acquired
	Waiting       = observe.Waiting
	Refused       = observe.Refused
	Renewed       = observe.Renewed
	RenewFailed   = observe.RenewFailed
	Lost          = observe.Lost
	Released      = observe.Released
	CleanupFailed = observe.CleanupFailed
	OutageBegan   = observe.OutageBegan
	OutageEnded   = observe.OutageEnded
	LeaseLeft     = observe.LeaseLeft
	HandedOver    = observe.HandedOver
	LeaseBroken   = observe.LeaseBroken
	PlaceChanged  = observe.PlaceChanged

	OnceCompleted = observe.OnceCompleted
	OnceReplayed  = observe.OnceReplayed
	OnceFailed    = observe.OnceFailed

	RunDone   = observe.RunDone
	RunFailed = observe.RunFailed
	RunMissed = observe.RunMissed
)

// Observers returns an Observer that passes each event to all, in their order.
func Observers(all ...Observer) Observer { return observe.Observers(all...) }

// awaitDelivery waits until all events are delivered and logged. It gives up on an Observer that
// blocks, and logs that.
func (c *Client) awaitDelivery(ctx context.Context) {
	patience := c.opts.RequestTimeout
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		patience = deliveryAtLeast
		fallthrough
	case ctx.Err() != nil:
		ctx = context.WithoutCancel(ctx)
	}
	c.events.Wait(ctx, patience)
	c.logs.Wait(ctx, patience)
}

// deliveryAtLeast is how long awaitDelivery waits for the last events even if the deadline of ctx has
// passed.
const deliveryAtLeast = 10 * time.Millisecond

// event returns an event of an acquire, as of now.
func (a *acquisition) event(kind EventKind, err error) Event {
	now := time.Now()
	e := Event{
		Kind: kind, Time: now, Context: a.values, Name: a.req.Name, Mode: a.req.Mode,
		Once: a.req.Once, LeaseID: a.req.LeaseID, Key: a.report.key, Attempt: a.report.sent, Waited: now.Sub(a.began), Err: err,
	}
	if by := a.blocker; by != nil {
		e.Holder, e.Place, e.Queue = by.Holder, by.Place, by.Queue
	}
	return e
}

// tellWaiting reports once that the acquire waits, and why. After that it reports a change of its
// place.
func (a *acquisition) tellWaiting(err error) {
	switch {
	case a.report.waited:
		a.tellPlace()
	case a.client.events.On():
		e := a.event(Waiting, err)
		a.report.waited, a.report.place = true, e.Place
		a.report.waiting = a.client.events.Tell(&e, false)
	}
}

// tellPlace reports a change of the place in the queue.
func (a *acquisition) tellPlace() {
	if by := a.blocker; a.report.waiting && by.Place != a.report.place && by.Place > 0 {
		e := a.event(PlaceChanged, nil)
		a.report.place = e.Place
		a.client.events.Tell(&e, false)
	}
}

// tellOutage reports that the store does not answer. If the Observer does not know yet that the
// acquire waits, it reports that first.
func (a *acquisition) tellOutage(err error) {
	if !a.client.events.On() {
		return
	}
	if !a.report.waited {
		a.tellWaiting(err)
	}
	e := a.event(OutageBegan, err)
	a.report.outage = a.client.events.Tell(&e, false)
}

// tellOutageEnded reports that the store answers again, or with err that the acquire has ended
// during the outage.
func (a *acquisition) tellOutageEnded(err error) {
	if a.report.outage {
		a.report.outage = false
		e := a.event(OutageEnded, err)
		e.Took = e.Time.Sub(a.failing.since)
		a.client.events.Tell(&e, true)
	}
}

// tellEnd sends the event of the end of the acquire, and returns whether it was not dropped. It is
// never dropped if the Observer knows that the acquire waits.
func (a *acquisition) tellEnd(e *Event) bool {
	a.tellOutageEnded(e.Err)
	e.AfterWait, a.report.waiting = a.report.waiting, false
	return a.client.events.Tell(e, e.AfterWait)
}

func (a *acquisition) tellRefused(err error) {
	if !a.client.events.On() {
		return
	}
	e := a.event(Refused, err)
	a.tellEnd(&e)
}

// tellReplayed reports that the do-once work was done before, by the run with this token.
func (a *acquisition) tellReplayed(token uint64) {
	if a.client.events.On() {
		e := a.event(OnceReplayed, nil)
		e.Token = token
		a.tellEnd(&e)
	}
}

// tellAcquired reports that the caller has the lease. If the lease has ended already, it reports
// that too.
func (a *acquisition) tellAcquired(l *Lease) {
	if !a.client.events.On() {
		return
	}
	e := a.event(Acquired, nil)
	e.Token = l.token
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Remaining = l.term.remaining(a.client.now())
	if a.report.handed {
		handed := e
		handed.Kind = HandedOver
		a.client.events.Tell(&handed, false)
	}
	if !a.tellEnd(&e) {
		return
	}
	l.reported = &leaseReport{key: a.report.key, once: a.req.Once, open: a.req.Once}
	switch {
	case l.lost != nil: // the loss was logged already
		e := l.lossLocked(l.background(), l.lost)
		l.tellOverLocked(&e)
	case l.state == stateReleased: // Close has released it
		l.tellReleasedLocked(l.background(), errors.Unwrap(l.result))
	}
}

// A leaseReport is what the Observer knows of a lease. Lease.mu guards it.
type leaseReport struct {
	key       LeaseID
	over      bool  // the end of the lease was reported
	once      bool  // the lease is for a run of do-once work
	open      bool  // the end of that run was not reported yet
	completed bool  // the result of the run is stored
	failure   error // why the run has no result; nil if that is not known
}

// background returns the context for events of the lease that are not caused by a call.
func (l *Lease) background() context.Context { return context.WithoutCancel(l.values) }

// eventLocked returns an event of a lease, as of now.
func (l *Lease) eventLocked(ctx context.Context, kind EventKind, err error) Event {
	now := l.client.now()
	e := Event{
		Kind: kind, Time: now.Mono, Context: ctx, Name: l.name, Mode: l.asked, LeaseID: l.id, Token: l.token,
		Held: now.Mono.Sub(l.term.began.Mono), Remaining: l.term.remaining(now), Err: err,
	}
	if l.reported != nil {
		e.Key, e.Once = l.reported.key, l.reported.once
	}
	return e
}

// tellRenewalLocked reports a renewal and how long it took.
func (l *Lease) tellRenewalLocked(took time.Duration, err error) {
	if l.reported == nil {
		return
	}
	e := l.eventLocked(l.background(), Renewed, err)
	if e.Took = took; err != nil {
		e.Kind = RenewFailed
	}
	l.client.events.Tell(&e, false)
}

// tellLostLocked reports and logs that the lease is lost.
func (l *Lease) tellLostLocked(ctx context.Context, err error) {
	e := l.lossLocked(ctx, err)
	l.client.logs.Tell(&e, false)
	l.tellOverLocked(&e)
}

// lossLocked returns the event of a loss.
func (l *Lease) lossLocked(ctx context.Context, err error) Event {
	e := l.eventLocked(ctx, Lost, err)
	if broken := (*BrokenError)(nil); errors.As(err, &broken) {
		e.Author, e.Reason = broken.Author, broken.Reason
	}
	return e
}

// tellReleasedLocked reports the outcome of the release, and of the run if the lease is for
// do-once work.
func (l *Lease) tellReleasedLocked(ctx context.Context, err error) {
	if l.reported == nil && err == nil {
		return
	}
	l.tellRunLocked(ctx, err)
	switch {
	case l.lost != nil: // the loss was reported already
	case isLost(err):
		l.tellLostLocked(ctx, err)
	default:
		e := l.eventLocked(ctx, Released, err)
		l.tellOverLocked(&e)
		if err != nil && driver.Permanent(err) { // the client does not repeat the release
			l.client.tellCleanupFailed(l.eventLocked(ctx, CleanupFailed, nil), err)
		}
	}
}

// tellOverLocked reports, once, that the lease has ended.
func (l *Lease) tellOverLocked(e *Event) {
	if l.reported == nil || l.reported.over {
		return
	}
	if l.reported.over = true; e.Author != "" {
		broken := *e
		broken.Kind = LeaseBroken
		l.client.events.Tell(&broken, false)
	}
	l.client.events.Tell(e, true)
}

// tellRunLocked reports, once, how the do-once run has ended.
func (l *Lease) tellRunLocked(ctx context.Context, err error) {
	t := l.reported
	if t == nil || !t.open {
		return
	}
	e := l.eventLocked(ctx, OnceFailed, cmp.Or(t.failure, err, errNoResult))
	if t.open = false; t.completed {
		e.Kind, e.Err = OnceCompleted, nil
	}
	l.client.events.Tell(&e, true)
}

// errNoResult is the error of a run that has ended without a result and without another error.
var errNoResult = errors.New("the run has ended without a result")

// tellLeftLocked reports that the lease was left. The run that it is for goes on elsewhere, so
// its end is not reported.
func (l *Lease) tellLeftLocked() {
	if l.reported != nil {
		e := l.eventLocked(l.background(), LeaseLeft, nil)
		l.reported.open = false
		l.tellOverLocked(&e)
	}
}

// noteCompleted notes, for the event of the run's end, that its result is stored. noteFailure
// notes why it has none.
func (l *Lease) noteCompleted() { l.note(true, nil) }

func (l *Lease) noteFailure(err error) { l.note(false, err) }

func (l *Lease) note(completed bool, failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported != nil {
		l.reported.completed, l.reported.failure = completed, failure
	}
}

// cleanupOf returns the event to send if the release of the lease fails in the background.
func (l *Lease) cleanupOf() Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.eventLocked(l.background(), CleanupFailed, nil)
}

// tellCleanupFailed reports and logs that a clean-up has failed.
func (c *Client) tellCleanupFailed(e Event, err error) {
	e.Time, e.Err = time.Now(), err
	c.logs.Tell(&e, false)
	c.events.Tell(&e, false)
}
