package holdfast

import "time"

// A Schedule determines when a job is due. Next returns the first such time after t, in
// whole seconds, or the zero time if there is none. The result must depend on t alone, so that
// all replicas get the same time. Every passes the previous scheduled time, in UTC.
//
// Periodic and Daily return schedules, and so does github.com/robfig/cron/v3. Its schedules
// are then in UTC unless they name a zone with CRON_TZ.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Periodic returns the schedule that is due at start, and at every whole multiple of every
// before and after it. Both must be whole seconds, every more than 0: Client.Every refuses
// others with ErrInvalid.
func Periodic(start time.Time, every time.Duration) Schedule { return periodic{start, every} }

type periodic struct {
	start time.Time
	every time.Duration
}

// Next implements Schedule. It counts in seconds, because a Duration overflows after 292 years.
func (p periodic) Next(t time.Time) time.Time {
	period := int64(p.every / time.Second)
	if period <= 0 || p.every%time.Second != 0 {
		return t // an error: a schedule must return a later time
	}
	n := floor(t.Unix()-p.start.Unix(), period) + 1
	return time.Unix(p.start.Unix()+n*period, int64(p.start.Nanosecond())).In(p.start.Location())
}

// Daily returns the schedule that is due once on each day of the calendar of zone, at this
// time of day, whatever the clocks there do:
//
//   - If the clocks jump over it, it is due at the jump: 02:30 at 03:00, when summer time begins.
//   - If the clocks show it twice, it is due the first time.
//   - On a day that the zone has left out, such as 2011-12-30 in Pacific/Apia, it is not due.
//
// Hour is 0 to 23 and minute 0 to 59; Every refuses others, and a zone that is nil, with
// ErrInvalid. All replicas should know the same rules of the zone. With time.Local they
// must be set to the same zone.
func Daily(zone *time.Location, hour, minute int) Schedule { return daily{zone, hour, minute} }

type daily struct {
	zone         *time.Location
	hour, minute int
}

// Next implements Schedule. It begins with the day before t, because clocks may be set back to
// it.
func (d daily) Next(t time.Time) time.Time {
	if d.zone == nil || d.hour < 0 || d.hour > 23 || d.minute < 0 || d.minute > 59 {
		return t // an error: a schedule must return a later time
	}
	year, month, day := t.In(d.zone).Date()
	for day--; ; day++ {
		due, ok := d.on(time.Date(year, month, day, d.hour, d.minute, 0, 0, time.UTC))
		if ok && due.After(t) {
			return due
		}
	}
}

// farthest is more than the offset of any zone from UTC.
const farthest = 26 * time.Hour

// on returns when the schedule is due on the day of wall, a wall-clock time written as UTC. It
// returns false if the zone has no such day. It tries the zone's periods of constant offset from
// UTC, one after the other.
func (d daily) on(wall time.Time) (due time.Time, ok bool) {
	for at := wall.Add(-farthest).In(d.zone); ; {
		begin, end := at.ZoneBounds()
		_, offset := at.Zone()
		due = wall.Add(-time.Duration(offset) * time.Second).In(d.zone)
		switch {
		case !begin.IsZero() && due.Before(begin): // the clocks jumped over it at begin
			return begin, dayOf(wall).Equal(dayOf(begin)) || dayOf(wall).Equal(dayOf(begin.Add(-time.Nanosecond)))
		case end.IsZero() || due.Before(end):
			return due, true
		}
		at = end
	}
}

// dayOf returns the calendar day of t in its zone, as midnight UTC, for comparisons.
func dayOf(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// ScheduledTime returns the scheduled time nearest to now. The schedule begins
// at start and repeats with the period every: for programs whose timer does not
// pass the time of its run. Replicas whose clocks are off by less than half of
// every get the same time for the same run. Start and every must be whole
// seconds, every more than 0.
func ScheduledTime(now, start time.Time, every time.Duration) time.Time {
	// Count in half seconds, because the middle between two times may be a half. A Duration
	// overflows after 292 years.
	period := int64(every / time.Second)
	since := 2*(now.Unix()-start.Unix()) + int64(now.Nanosecond()/5e8) + period
	return time.Unix(start.Unix()+floor(since, 2*period)*period, 0).In(start.Location())
}

// floor divides and rounds down. a is negative for a time before the start.
func floor(a, b int64) int64 {
	n := a / b
	if a%b < 0 {
		n--
	}
	return n
}

// keyOf returns the key that Once is to use in place of key.
func (o *OnceOptions) keyOf(key string) string {
	if o == nil || o.Scheduled.IsZero() || key == "" { // an empty key must stay invalid
		return key
	}
	return runKey(key, o.Scheduled)
}

// runKey names one run of a schedule.
func runKey(name string, scheduled time.Time) string { return name + "@" + scheduleName(scheduled) }

// scheduleName writes a scheduled time in UTC, the same on every machine.
func scheduleName(scheduled time.Time) string {
	layout := "2006-01-02T15:04Z"
	if scheduled.Second() != 0 {
		layout = "2006-01-02T15:04:05Z"
	}
	return scheduled.UTC().Format(layout)
}
