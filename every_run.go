package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

const (
	// clockGlance is how soon a leader that waits sees that its clock was set.
	clockGlance = 10 * time.Second

	// mostAhead is how far the clock of a leader may be ahead of the store's. Whoever
	// is further ahead would run what is not due, and settle it for all others.
	mostAhead = 5 * time.Minute
)

// errAhead: a leader would run what is not due.
var errAhead = errors.New("the clock of this host is ahead of the store's")

// A scheduler is one call of Every.
type scheduler struct {
	ctx      context.Context // of Every
	client   *Client
	recorder driver.Recorder
	name     string
	schedule Schedule
	opts     EveryOptions
	fn       func(context.Context, EveryRun) error
	verdict  error // an error that would come again, for which Every ends
}

// lead is what the replica does that leads: it waits for scheduled times and settles
// them, until ctx ends or something fails, when another replica may do better.
func (s *scheduler) lead(ctx context.Context, _ *Lease) error {
	r, err := s.recall(ctx)
	for err == nil && s.sleep(ctx, r) {
		r, err = s.round(ctx, r)
	}
	switch {
	case s.verdict != nil:
		return nil
	case err == nil:
		return context.Cause(ctx)
	}
	return err
}

// sleep waits until there is something to do, by a clock that may be set meanwhile. It
// returns false as soon as ctx ends.
func (s *scheduler) sleep(ctx context.Context, r *ScheduleRecord) bool {
	at := s.wake(r)
	for s.verdict == nil {
		left := clockGlance
		if !at.IsZero() {
			left = min(left, at.Sub(s.opts.clock()))
		}
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !ask.Sleep(ctx, left) {
			return false
		}
	}
	return false
}

// failure returns err as it is told, and remembers it if it would come again.
func (s *scheduler) failure(err error) error {
	if err != nil && hopeless(err) {
		s.verdict = err
	}
	return opError("every", s.name, err)
}

func (s *scheduler) recall(ctx context.Context) (*ScheduleRecord, error) {
	ctx, cancel := s.client.requestContext(ctx)
	defer cancel()
	r, err := scheduleOf(ctx, s.recorder, s.name)
	return r, s.failure(err)
}

// round takes the lock of the name and settles one thing. known is what this leader
// knows of the record, nil at first; it returns what it knows afterwards.
func (s *scheduler) round(ctx context.Context, known *ScheduleRecord) (*ScheduleRecord, error) {
	lease, err := s.acquire(ctx)
	if err != nil {
		return nil, s.failure(err)
	}
	defer func() { _ = lease.Release(s.ctx) }() // after a commit this does nothing
	r, err := s.recall(ctx)
	if err != nil {
		return nil, err
	}
	if known != nil && (r == nil || r.Settled.Before(known.Settled)) {
		r = known // the store has lost what this leader has read in it, or written
	}
	now := s.opts.clock().Round(0).UTC()
	if ahead := now.Sub(time.UnixMicro(int64(lease.token))); ahead > mostAhead { // a token is the store's clock, or more
		return nil, s.failure(fmt.Errorf("%w by %s: set it right; until then this replica runs nothing", errAhead, driver.Span(ahead)))
	}
	p := s.plan(r, now)
	switch {
	case p.record != nil:
		return p.record, s.settle(lease, p)
	case !p.due.IsZero():
		return r, s.run(lease, r, p.due)
	}
	return r, nil // somebody else has settled it
}

// acquire takes the lock of the name: as that of do-once work, for those who look on.
func (s *scheduler) acquire(ctx context.Context) (*Lease, error) {
	w := &waiter{}
	if err := s.client.prepare(ctx, &w.acquisition, s.name, s.opts.acquire(), true); err != nil {
		return nil, err
	}
	w.req.Holder.Once = true
	return w.run(ctx, true)
}

// commit writes the record and ends the lease, in one step.
func (s *scheduler) commit(lease *Lease, r *ScheduleRecord) error {
	r.Next = s.after(r.Settled)
	return lease.complete(s.ctx, s.recorder, driver.CompleteRequest{
		Name: s.name, LeaseID: lease.id, Retention: s.opts.Retention, Record: r.format(),
	})
}

// settle writes down what a plan has found, and tells what was missed once that is
// written.
func (s *scheduler) settle(lease *Lease, p plan) error {
	if err := s.commit(lease, p.record); err != nil {
		return s.failure(err)
	}
	s.tellMissed(p.missed)
	return nil
}

func (s *scheduler) tellMissed(m MissedRuns) {
	if m.Count == 0 {
		return
	}
	e := Event{Kind: RunMissed, Scheduled: m.Last, Count: m.Count}
	if m.Err != "" {
		e.Err = errors.New(m.Err)
	}
	s.tell(e)
	s.opts.Missed(m)
}

// tell tells the Observer of the client.
func (s *scheduler) tell(e Event) {
	e.Context, e.Name = s.ctx, s.name
	s.client.events.Tell(&e, false)
}

// run runs fn, and writes down what came of it, even if fn panics.
func (s *scheduler) run(lease *Lease, r *ScheduleRecord, scheduled time.Time) (err error) {
	run := EveryRun{Name: s.name, Scheduled: scheduled, Previous: r.Last.Scheduled, Attempt: 1, Lease: lease}
	if r.Failing != nil {
		run.Attempt += r.Failing.Attempts
	}
	ctx, stop := lease.attach(s.ctx)
	started := time.Now()
	err = errors.New("it has panicked, or ended its goroutine")
	defer func() {
		stop()
		took := time.Since(started)
		var missed MissedRuns
		if err == nil {
			err = s.done(run, r, took)
		} else {
			missed, err = s.failed(run, r, err)
		}
		e := Event{Kind: RunDone, Scheduled: scheduled, Token: lease.token, Took: took}
		if err != nil {
			err = fmt.Errorf("run of %s: %w", scheduleName(scheduled), err)
			e.Kind, e.Err = RunFailed, err
		}
		s.tell(e)
		s.tellMissed(missed)
		err = opError("every", s.name, err)
	}()
	return s.fn(ctx, run)
}

// done writes down that a run is done.
func (s *scheduler) done(run EveryRun, r *ScheduleRecord, took time.Duration) error {
	r.Settled, r.Failing = run.Scheduled, nil
	r.Done++
	r.Last = DoneRun{
		Scheduled: run.Scheduled, Started: s.opts.clock().Add(-took).Round(0).UTC(), Took: took,
		By: recordText(run.Lease.holder.String()), Token: run.Lease.token, Attempt: run.Attempt,
	}
	if err := s.commit(run.Lease, r); err != nil {
		_ = s.failure(err)
		return fmt.Errorf("it has succeeded, but that is not written down: %w", err)
	}
	return nil
}

// failed writes down that a run has failed, unless that is for the end of its context:
// then another replica may try again at once.
func (s *scheduler) failed(run EveryRun, r *ScheduleRecord, err error) (missed MissedRuns, _ error) {
	if lost := run.Lease.lostBefore(); lost != nil {
		if !isLost(err) {
			err = fmt.Errorf("%w (%w)", err, lost)
		}
		return missed, err
	}
	if s.ctx.Err() != nil {
		return missed, err
	}
	r.Failing = &FailedRun{
		Scheduled: run.Scheduled, At: s.opts.clock().Round(0).UTC(), By: recordText(run.Lease.holder.String()),
		Attempts: run.Attempt, Err: recordText(err.Error()),
	}
	if run.Attempt == s.opts.Attempts {
		missed.add(run.Scheduled)
		missed.Err = r.Failing.Err
		r.miss(missed)
	}
	if e := s.commit(run.Lease, r); e != nil {
		_ = s.failure(e)
		return MissedRuns{}, fmt.Errorf("%w (and that is not written down: %w)", err, e)
	}
	return missed, err
}
