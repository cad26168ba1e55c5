package holdfast

import (
	"fmt"
	"time"
)

// A Schedule says for when a job is due. Next returns the first such time after t, in
// whole seconds, or the zero time if there is none. It must follow from t alone, so that
// all replicas get the same: Every hands it the scheduled time before, in UTC.
//
// The schedules of github.com/robfig/cron/v3 are such. Those that name no zone with
// CRON_TZ are in UTC then.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Periodic returns the schedule that is due at start, and then every so often; before
// start at the same times, counted back. Both must be whole seconds, every more than 0:
// Every refuses others with ErrInvalid.
func Periodic(start time.Time, every time.Duration) Schedule { return periodic{start, every} }

type periodic struct {
	start time.Time
	every time.Duration
}

// Next implements Schedule. It counts in seconds, and not in a Duration, which ends
// after 292 years.
func (p periodic) Next(t time.Time) time.Time {
	period := int64(p.every / time.Second)
	if period <= 0 || p.every%time.Second != 0 {
		return t // which no schedule may say
	}
	n := floor(t.Unix()-p.start.Unix(), period) + 1
	return time.Unix(p.start.Unix()+n*period, int64(p.start.Nanosecond())).In(p.start.Location())
}

// after returns the scheduled time that follows t, in UTC, or the zero time. What no
// schedule may say ends Every.
func (s *scheduler) after(t time.Time) time.Time {
	next := s.schedule.Next(t)
	switch {
	case next.IsZero(), next.Year() > 9999: // which no record can hold
		return time.Time{}
	case !next.After(t) || next.Nanosecond() != 0:
		s.verdict = fmt.Errorf("%w schedule: after %s it says %s: want a later time, in whole seconds", ErrInvalid, t.Format(time.RFC3339Nano), next.Format(time.RFC3339Nano))
		return time.Time{}
	}
	return next.UTC()
}

// A plan is what is to be done about a schedule at one instant.
type plan struct {
	record *ScheduleRecord // to be written, or nil
	missed MissedRuns      // what it says to be missed that the one before did not
	due    time.Time       // to be run, unless there is a record to be written or it is zero
}

// mostMissed bounds how many scheduled times one plan looks at; the next one goes on.
const mostMissed = 100_000

// plan looks at the scheduled times up to now that nobody has settled. r is what the
// store has, or nil.
func (s *scheduler) plan(r *ScheduleRecord, now time.Time) (p plan) {
	if r == nil {
		return plan{record: &ScheduleRecord{Began: now, Settled: now.Truncate(time.Second)}}
	}
	t := s.after(r.Settled)
	if !t.Equal(r.Next) {
		return r.underAnother(now)
	}
	for !t.IsZero() && !t.After(now) && p.missed.Count < mostMissed {
		next := s.after(t)
		superseded := !s.opts.Each && !next.IsZero() && !next.After(now)
		if !superseded && now.Before(t.Add(s.opts.Late)) {
			p.due = t
			break
		}
		p.missed.add(t)
		t = next
	}
	if p.missed.Count > 0 {
		if f := r.Failing; f != nil {
			p.missed.Err = f.Err
		}
		r.miss(p.missed)
		p.record = r
	}
	return p
}

// underAnother goes over from another schedule, under which the record was written. What
// was due by that one is missed; what would have been by the new one, before now, is not.
func (r *ScheduleRecord) underAnother(now time.Time) (p plan) {
	if !r.Next.IsZero() && !r.Next.After(now) {
		p.missed.add(r.Next)
		r.miss(p.missed)
	}
	r.Failing = nil
	if now = now.Truncate(time.Second); now.After(r.Settled) {
		r.Settled = now
	}
	p.record = r
	return p
}

// wake returns when a leader has something to do next: when the next run is due, or is
// to be tried again. It is the zero time if the schedule has ended.
func (s *scheduler) wake(r *ScheduleRecord) time.Time {
	now := s.opts.clock()
	if r == nil {
		return now
	}
	t := s.after(r.Settled)
	switch {
	case !t.Equal(r.Next): // another schedule: see to it soon, but do not spin if ours does not keep its word
		return now.Add(time.Second)
	case r.Failing == nil || t.IsZero():
		return t
	}
	again := earlier(now.Add(pauseAfter(r.Failing.Attempts)), t.Add(s.opts.Late))
	if next := s.after(t); !s.opts.Each && !next.IsZero() {
		again = earlier(again, next)
	}
	return again
}

// pauseAfter returns how long a run rests that has failed so often: 1 s, 2 s, 4 s and so
// on, up to a minute.
func pauseAfter(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 6), time.Minute)
}
