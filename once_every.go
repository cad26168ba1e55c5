package holdfast

import (
	"context"
	"fmt"
	"time"
)

// OnceEvery is Once for one run of a schedule: however many replicas call it
// for the same scheduled time, whatever their clocks say, fn runs once. The key
// is of the form "reports/nightly@2026-11-21T03:00Z".
//
// scheduled is the time for which the schedule says that the run is due, in
// whole seconds, and not the present time: see ScheduledTime. Retention must be longer
// than a replica may be late; a replica that comes later works again.
func (c *Client) OnceEvery(ctx context.Context, key string, scheduled time.Time, opts *OnceOptions, fn func(ctx context.Context, l *Lease) ([]byte, error)) (OnceResult, error) {
	if err := c.checkName(key); err != nil { // the time would make it a name
		return OnceResult{}, opError("once", key, err)
	}
	if scheduled.Nanosecond() != 0 || scheduled.IsZero() {
		err := fmt.Errorf("%w scheduled time %s: want whole seconds, as the schedule says and not as a clock does: see ScheduledTime", ErrInvalid, scheduled)
		return OnceResult{}, opError("once", key, err)
	}
	return c.Once(ctx, runKey(key, scheduled), opts, fn)
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

// ScheduledTime returns the time nearest to now at which a schedule is due that
// begins at start and repeats with the period every: for programs whose timer
// does not tell which run it is for. Replicas whose clocks are off by less than
// half of every get the same time for the same run. Start and every must be
// whole seconds, every more than 0.
func ScheduledTime(now, start time.Time, every time.Duration) time.Time {
	// In half seconds, because the middle between two times may be one, and not
	// as a Duration, which ends after 292 years.
	period := int64(every / time.Second)
	since := 2*(now.Unix()-start.Unix()) + int64(now.Nanosecond()/5e8) + period
	return time.Unix(start.Unix()+floor(since, 2*period)*period, 0).In(start.Location())
}

// floor divides and rounds down, even what is negative: a time before the start.
func floor(a, b int64) int64 {
	n := a / b
	if a%b < 0 {
		n--
	}
	return n
}
