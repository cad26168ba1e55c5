package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// mostAhead is how far the clock of a leader may be ahead of the store's. A leader that is
// further ahead would run what is not due, and settle it for all others.
const mostAhead = 5 * time.Minute

// errAhead is the error of a leader whose clock is more than mostAhead ahead.
var errAhead = errors.New("the clock of this host is ahead of the store's")

// A scheduler is one call of Every. It sends the requests and runs fn; a plan decides what
// to do, and keeps the record.
type scheduler struct {
	ctx      context.Context // the context of Every
	client   *Client
	recorder driver.Recorder
	name     string
	times    timetable
	opts     EveryOptions
	fn       func(context.Context, EveryRun) error
	fatal    error     // an error that a retry would meet again; Every then ends
	written  time.Time // when the last record that this leader has read or written was written, by the local clock
}

// verdict returns the error for which Every ends, or nil.
func (s *scheduler) verdict() error { return cmp.Or(s.fatal, s.times.err) }

// now is the time of day of this replica, as records have it.
func (s *scheduler) now() time.Time { return s.opts.clock().Round(0).UTC() }

// lead is the work of the replica that leads. It waits for scheduled times and settles them,
// until ctx ends or something fails: another replica may then do better.
func (s *scheduler) lead(ctx context.Context, _ *Lease) error {
	r, err := s.recall(ctx)
	for err == nil && s.sleep(ctx, r) {
		r, err = s.round(ctx, r)
	}
	switch {
	case s.verdict() != nil:
		return nil
	case err == nil:
		return context.Cause(ctx)
	}
	return err
}

// sleep waits until there is something to do, by a clock that may be set meanwhile. It
// returns false as soon as ctx ends.
func (s *scheduler) sleep(ctx context.Context, r *ScheduleRecord) bool {
	for {
		left := min(clockGlance, s.times.left(r, s.written, s.opts.clock()))
		switch {
		case s.verdict() != nil:
			return false
		case left <= 0:
			return ctx.Err() == nil
		case !s.rest(ctx, left):
			return false
		}
	}
}

// rest waits for d. It returns false as soon as ctx ends, or the client is closed or shut down,
// so that the schedule is free for other replicas at once.
func (s *scheduler) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.client.closing:
		s.fatal = ErrClosed
	case <-ctx.Done():
	}
	return false
}

// failure adds the name to err. It sets fatal if a retry would meet the same error.
func (s *scheduler) failure(err error) error {
	if err != nil && hopeless(err) {
		s.fatal = err
	}
	return opError("every", s.name, err)
}

func (s *scheduler) recall(ctx context.Context) (*ScheduleRecord, error) {
	ctx, cancel := s.client.requestContext(ctx)
	defer cancel()
	r, expiresIn, err := scheduleOf(ctx, s.recorder, s.name)
	s.written = time.Now()
	if r != nil { // INVARIANT I8: the store's clock decides how old the record is
		s.written = s.written.Add(-max(s.opts.ForgetAfter-expiresIn, 0))
	}
	return r, s.failure(err)
}

// round takes the lock of the name, and runs or records what is due. known is the record that
// this leader has read or written last, or nil. round returns the record after it.
func (s *scheduler) round(ctx context.Context, known *ScheduleRecord) (*ScheduleRecord, error) {
	lease, err := s.acquire(ctx)
	if err != nil {
		return nil, s.failure(err)
	}
	defer func() { _ = lease.Release(s.ctx) }() // does nothing after a commit
	r, err := s.recall(ctx)
	if err != nil {
		return nil, err
	}
	var seen *BegunRun
	if known != nil {
		seen = known.Begun
		if r == nil || r.Settled.Before(known.Settled) {
			r = known // the store has lost the record that this leader has read or written
		}
	}
	now := s.now()
	if ahead := now.Sub(time.UnixMicro(int64(lease.token))); ahead > mostAhead { // a token is the store's time in µs, or greater
		return nil, s.failure(fmt.Errorf("%w by %s: set it right; until then this replica runs nothing", errAhead, lockinfo.Span(ahead)))
	}
	p := s.times.plan(r, now)
	switch {
	case p.write:
		return p.record, s.settle(lease, &p)
	case p.due.IsZero(): // another replica has settled it
		return r, nil
	case r.Begun != nil && !r.Begun.same(seen): // another replica has begun it meanwhile: rest first
		return r, nil
	}
	return r, s.run(lease, &p)
}

// acquire takes the lock of the name. Its holder is marked as do-once work.
func (s *scheduler) acquire(ctx context.Context) (*Lease, error) {
	a := &acquisition{}
	if err := s.client.prepare(ctx, a, s.name, s.opts.acquire(), true); err != nil {
		return nil, err
	}
	a.req.Holder.Once = true
	return a.run(ctx)
}

// commit writes the record and ends the lease, in one step.
func (s *scheduler) commit(lease *Lease, p *plan) error {
	p.record.Next = s.times.after(p.record.Settled)
	s.written = time.Now().Add(-p.rested)
	return lease.complete(s.ctx, s.recorder, s.completion(lease, p))
}

// completion returns the request that writes the record. The next leader computes the age of the
// record from what is left of its retention; see recall.
func (s *scheduler) completion(lease *Lease, p *plan) driver.CompleteRequest {
	retention := max(s.opts.ForgetAfter-p.rested, MinTTL)
	return driver.CompleteRequest{Name: s.name, LeaseID: lease.id, Retention: retention, Record: p.record.format()}
}

// settle writes the record of a plan, and reports the missed runs.
func (s *scheduler) settle(lease *Lease, p *plan) error {
	if err := s.commit(lease, p); err != nil {
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

// tell sends an event to the client's Observer.
func (s *scheduler) tell(e Event) {
	e.Context, e.Name = s.ctx, s.name
	s.client.events.Tell(&e, false)
}

// run runs fn. It records the beginning of the run first, so that the attempt counts even if the
// process dies. It records the outcome even if fn panics.
func (s *scheduler) run(lease *Lease, p *plan) (err error) {
	previous := p.record.Last.Scheduled
	p.begin(s.now(), lease.holder.String())
	if err := lease.keepRecord(s.ctx, s.recorder, s.completion(lease, p)); err != nil { // the lease goes on
		return s.failure(err)
	}
	ctx, stop := lease.attach(s.ctx)
	started := time.Now()
	err = errors.New("it has panicked, or ended its goroutine")
	defer func() {
		stop()
		err = s.ended(lease, p, time.Since(started), err)
	}()
	return s.fn(ctx, EveryRun{Name: s.name, Scheduled: p.due, Previous: previous, Attempt: p.attempt, Lease: lease})
}

// ended records and reports how a run has ended. err is the error of fn.
func (s *scheduler) ended(lease *Lease, p *plan, took time.Duration, err error) error {
	if err == nil {
		err = s.done(lease, p, took)
	} else {
		err = s.failed(lease, p, err)
	}
	e := Event{Kind: RunDone, Scheduled: p.due, Token: lease.token, Took: took}
	if err != nil {
		err = fmt.Errorf("run of %s: %w", scheduleName(p.due), err)
		e.Kind, e.Err = RunFailed, err
	}
	s.tell(e)
	s.tellMissed(p.missed)
	return opError("every", s.name, err)
}

// done records that a run is done.
func (s *scheduler) done(lease *Lease, p *plan, took time.Duration) error {
	p.done(s.now(), took, lease.holder.String(), lease.token)
	if err := s.commit(lease, p); err != nil {
		_ = s.failure(err)
		return fmt.Errorf("it has succeeded, but that is not recorded: %w", err)
	}
	return nil
}

// failed records that a run has failed. If ctx of Every has ended, the attempt does not count,
// and another replica may try again at once. If the lease is lost failed writes nothing, and the
// record of the run's beginning remains.
func (s *scheduler) failed(lease *Lease, p *plan, err error) error {
	lost := lease.lostBefore()
	switch {
	case lost != nil && isLost(err):
		return err
	case lost != nil:
		return fmt.Errorf("%w (%w)", err, lost)
	case s.ctx.Err() != nil:
		p.stopped()
	default:
		p.failed(s.now(), err)
	}
	if e := s.commit(lease, p); e != nil {
		_ = s.failure(e)
		p.missed = MissedRuns{}
		return fmt.Errorf("%w (and that is not recorded: %w)", err, e)
	}
	return err
}
