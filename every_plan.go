package holdfast

import (
	"fmt"
	"time"
)

// clockGlance is how often a leader that waits reads its clock, which may have been set.
const clockGlance = 10 * time.Second

// mostMissed bounds how many missed times one plan records. The next plan goes on.
const mostMissed = 100_000

// A timetable is a schedule with the rules for late runs; see EveryOptions.
type timetable struct {
	schedule Schedule
	opts     *EveryOptions
	err      error // set when the schedule has returned an invalid time; Every then ends
}

// after returns the scheduled time that follows t, in UTC, or the zero time.
func (s *timetable) after(t time.Time) time.Time {
	next := s.schedule.Next(t)
	switch {
	case next.IsZero(), next.UTC().Year() > 9999: // a record cannot hold a later year
		return time.Time{}
	case !next.After(t) || next.Nanosecond() != 0:
		s.err = fmt.Errorf("%w schedule: after %s it returns %s: want a later time, in whole seconds", ErrInvalid, t.Format(time.RFC3339Nano), next.Format(time.RFC3339Nano))
		return time.Time{}
	}
	return next.UTC()
}

// spent reports whether the run of t has had MaxAttempts attempts.
func (s *timetable) spent(b *BegunRun, t time.Time) bool {
	return b != nil && s.opts.MaxAttempts > 0 && b.Attempts >= s.opts.MaxAttempts && b.Scheduled.Equal(t)
}

// left returns how long until the next run is due, or is to be tried again, according to r, which
// was written at written. The pause between two attempts does not depend on a wall clock, which
// may be set.
func (s *timetable) left(r *ScheduleRecord, written, now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	t := s.after(r.Settled)
	switch {
	case !t.Equal(r.Next): // another schedule: plan soon, but do not spin if ours is not constant
		return time.Second - time.Since(written)
	case t.IsZero(): // the schedule has ended
		return clockGlance
	case r.Begun == nil:
		return t.Sub(now)
	case r.Begun.Open, s.spent(r.Begun, t): // the leader waits for the run's lock, or records it as missed
		return 0
	}
	late := t.Add(s.opts.StartWithin)
	if next := s.after(t); !s.opts.CatchUp && !next.IsZero() {
		late = earlier(late, next)
	}
	return max(t.Sub(now), min(pauseAfter(r.Begun.Attempts)-time.Since(written), late.Sub(now)))
}

// pauseAfter returns the pause after this many attempts: 1 s, 2 s, 4 s and so on, up to a
// minute.
func pauseAfter(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 6), time.Minute)
}

// A plan is what to do about a schedule at one instant. It carries the record to the end of
// a run: it changes the record, and the scheduler writes it.
type plan struct {
	times   *timetable
	record  *ScheduleRecord
	write   bool          // the record has changed: write it, and run nothing
	missed  MissedRuns    // newly in the record
	due     time.Time     // the scheduled time to run, unless it is zero or write is set
	attempt int           // the number of the attempt that begin has begun
	before  *BegunRun     // record.Begun before that attempt
	rested  time.Duration // how much of the pause before the next attempt counts as passed
}

// plan looks at the unsettled scheduled times up to now. r is the store's record, or nil.
func (s *timetable) plan(r *ScheduleRecord, now time.Time) plan {
	if r == nil {
		r = &ScheduleRecord{Began: now, Settled: now.Truncate(time.Second)}
		return plan{times: s, record: r, write: true}
	}
	p := plan{times: s, record: r}
	if r.Begun != nil && r.Begun.Open { // its lease has ended, because this leader has the lock
		r.Begun.end(now, r.Begun.silence())
		p.write = true
	}
	t := s.after(r.Settled)
	if !t.Equal(r.Next) {
		p.change(now)
		return p
	}
	for !t.IsZero() && !t.After(now) && p.missed.Count < mostMissed {
		next := s.after(t)
		superseded := !s.opts.CatchUp && !next.IsZero() && !next.After(now)
		if !superseded && !s.spent(r.Begun, t) && now.Before(t.Add(s.opts.StartWithin)) {
			p.due = t
			break
		}
		p.missed.add(t)
		t = next
	}
	if p.missed.Count > 0 {
		p.miss()
	}
	return p
}

// change takes over a record that was written under another schedule. The next time of the old
// schedule is missed if it is due already. Past times of the new schedule are skipped.
func (p *plan) change(now time.Time) {
	r := p.record
	r.Begun = nil
	if !r.Next.IsZero() && !r.Next.After(now) {
		p.missed.add(r.Next)
		p.miss()
	}
	if now = now.Truncate(time.Second); now.After(r.Settled) {
		r.Settled = now
	}
	p.write = true
}

// miss puts the missed runs into the record, with the error of the last attempt.
func (p *plan) miss() {
	if p.record.Begun != nil {
		p.missed.Err = p.record.Begun.Err
	}
	p.record.miss(p.missed)
	p.write = true
}

// begin notes that a run begins.
func (p *plan) begin(now time.Time, by string) {
	p.attempt, p.before = 1, p.record.Begun
	begun := &BegunRun{Scheduled: p.due, At: now, By: recordText(by), Open: true}
	if p.before != nil {
		p.attempt += p.before.Attempts
		begun.Err = p.before.Err
	}
	begun.Attempts = p.attempt
	p.record.Begun = begun
}

// done notes that the run is done, by the holder of a lease with this token.
func (p *plan) done(now time.Time, took time.Duration, by string, token uint64) {
	r := p.record
	r.Settled, r.Begun = p.due, nil
	r.Done++
	r.Last = DoneRun{
		Scheduled: p.due, Started: now.Add(-took), Took: took,
		By: recordText(by), Token: token, Attempt: p.attempt,
	}
	if p.attempt > 1 {
		r.remember("r")
	} else {
		r.remember("d")
	}
}

// failed notes that the run has failed, and is missed if it was the last attempt.
func (p *plan) failed(now time.Time, err error) {
	p.record.Begun.end(now, err.Error())
	if p.times.spent(p.record.Begun, p.due) {
		p.missed.add(p.due)
		p.miss()
	}
}

// stopped notes that ctx has ended the attempt. It does not count, and the next one needs no
// pause.
func (p *plan) stopped() {
	if p.record.Begun = p.before; p.before != nil {
		p.rested = pauseAfter(p.before.Attempts)
	}
}
