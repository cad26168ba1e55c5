package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	_ "time/tzdata" // time zones for machines without a zone database
)

func TestPeriodic(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		must(t, err)
		return v
	}
	daily := holdfast.Periodic(at("2026-01-01T03:00:00Z"), 24*time.Hour)
	for after, want := range map[string]string{
		"2026-11-21T02:59:59.999999999Z": "2026-11-21T03:00:00Z",
		"2026-11-21T03:00:00Z":           "2026-11-22T03:00:00Z",
		"2026-11-21T03:00:00.000000001Z": "2026-11-22T03:00:00Z",
		"2025-12-31T02:00:00Z":           "2025-12-31T03:00:00Z",
		"2025-12-31T03:00:00Z":           "2026-01-01T03:00:00Z",
		"1600-06-01T05:00:00Z":           "1600-06-02T03:00:00Z",
		"2026-11-21T06:30:00+04:00":      "2026-11-21T03:00:00Z",
	} {
		got := daily.Next(at(after))
		expect(t, got.Equal(at(want)), "after %s it is due at %s, want %s", after, got, want)
	}
}

// TestEveryBadSchedules checks that a schedule that is invalid, now or later, ends Every with an
// error that describes it.
func TestEveryBadSchedules(t *testing.T) {
	start := time.Unix(0, 0)
	for name, s := range map[string]holdfast.Schedule{
		"no schedule":         nil,
		"no period":           holdfast.Periodic(start, 0),
		"a period below zero": holdfast.Periodic(start, -time.Second),
		"half seconds":        holdfast.Periodic(start, 1500*time.Millisecond),
		"a start in a second": holdfast.Periodic(start.Add(time.Millisecond), time.Minute),
		"the same time":       nextFunc(func(t time.Time) time.Time { return t }),
		"later nonsense": nextFunc(func(t time.Time) time.Time {
			if t.Minute() >= 2 {
				return t.Add(-time.Second)
			}
			return minutely.Next(t)
		}),
	} {
		runInBubble(t, name, func(t *testing.T) {
			engine := newFaulty()
			err := newClient(t, engine, nil).Every(t.Context(), "job", s, nil, func(context.Context, holdfast.EveryRun) error { return nil })
			expect(t, errors.Is(err, holdfast.ErrInvalid) && strings.Contains(err.Error(), `every "job": invalid schedule: `), "%v", err)
			nothingLeft(t, engine, "job", "job@schedule")
		})
	}
}

type nextFunc func(time.Time) time.Time

func (f nextFunc) Next(t time.Time) time.Time { return f(t) }

// TestEveryScheduleEnds checks that Every waits for the end of its context after the schedule has
// ended.
func TestEveryScheduleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
		once := nextFunc(func(t time.Time) time.Time {
			if due := time.Unix(946684860, 0); t.Before(due) { // 00:01:00
				return due
			}
			return time.Time{}
		})
		stop := d.every(client, once, nil, d.run(0, nil))
		time.Sleep(time.Hour)
		d.want("00:01:00 run of 00:01:00, attempt 1")
		s := d.status(client)
		expect(t, s.Next.IsZero() && s.Led, "status: %+v", s)
		_ = stop()
	})
}

// TestEveryEndsWithTheYear9999 checks that a time whose year has five digits in UTC ends the
// schedule, even if the year has four in the time's own zone.
func TestEveryEndsWithTheYear9999(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
		last := time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -5*60*60))
		stop := d.every(client, nextFunc(func(time.Time) time.Time { return last }), nil, d.run(0, nil))
		time.Sleep(time.Minute)
		s := d.status(client)
		expect(t, s.Next.IsZero() && s.Led && len(d.failures()) == 0, "status %+v, failures %v", s, d.failures())
		_ = stop()
	})
}

// TestEveryBadInput checks that invalid arguments and names of another kind lead to the documented
// errors, and leave nothing in the store.
func TestEveryBadInput(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		fn := func(context.Context, holdfast.EveryRun) error { return nil }
		ctx := t.Context()
		must(t, errOf(c.Once(ctx, "result", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })))
		closed := newClient(t, newFaultyOn(engine.Engine), nil)
		_ = closed.Close()
		check := func(what string, err error, want error, says string) {
			t.Helper()
			expect(t, errors.Is(err, want) && strings.Contains(err.Error(), says), "%s: %v; want %v", what, err, want)
		}
		every := func(c *holdfast.Client, name string, o *holdfast.EveryOptions) error {
			return c.Every(ctx, name, minutely, o, fn)
		}
		check("a result", every(c, "result", nil), holdfast.ErrKindMismatch, "take another name for the schedule")
		check("closed", every(closed, "job", nil), holdfast.ErrClosed, "")
		check("no name", every(c, "", nil), holdfast.ErrInvalid, "")
		check("a long name", every(c, strings.Repeat("n", driver.MaxNameLen-8), nil), holdfast.ErrInvalid, "")
		check("no fn", c.Every(ctx, "job", minutely, nil, nil), holdfast.ErrInvalid, "fn: it is nil")
		for what, o := range map[string]holdfast.EveryOptions{
			"TTL": {TTL: time.Nanosecond}, "StartWithin": {StartWithin: -1}, "MaxAttempts": {MaxAttempts: -1}, "ForgetAfter": {ForgetAfter: 1}, "StallAfter": {StallAfter: 1},
		} {
			check(what, every(c, "job", &o), holdfast.ErrInvalid, what)
			check(what, o.Check(), holdfast.ErrInvalid, what)
		}
		wantErr(t, (*holdfast.EveryOptions)(nil).Check(), nil)
		err := c.Do(ctx, "job", nil, func(ctx context.Context, _ *holdfast.Lease) error {
			return c.Every(ctx, "job", minutely, nil, fn)
		})
		check("in its own lock", err, holdfast.ErrDeadlock, "")
		nothingLeft(t, engine, "job", "job@schedule", "result@schedule")
	})
}

// TestOnceOfASchedule checks that Once under the name of a schedule is refused, and does not take
// the record for a result.
func TestOnceOfASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := &diary{t: t}, newClient(t, newFaulty(), nil)
		stop := d.every(c, minutely, nil, d.run(0, nil))
		_, err := c.Once(t.Context(), "job", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
		expect(t, errors.Is(err, holdfast.ErrKindMismatch) && strings.Contains(err.Error(), "it is a schedule"), "%v", err)
		if _, err := c.Records().Result(t.Context(), "job"); !errors.Is(err, holdfast.ErrKindMismatch) {
			t.Error(err)
		}
		_ = stop()
	})
}

// TestScheduleRemembersRuns checks that the record contains the outcomes of the latest 30 scheduled
// times.
func TestScheduleRemembersRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, runs := &diary{t: t}, 0
		c := newClient(t, newFaulty(), nil)
		run := func(context.Context, holdfast.EveryRun) error {
			if runs++; runs == 2 || runs > 4 {
				return errors.New("no disk")
			}
			return nil
		}
		stop := d.every(c, minutely, &holdfast.EveryOptions{MaxAttempts: 2}, run)
		time.Sleep(4*time.Minute + 30*time.Second)
		s := d.status(c)
		expect(t, s.Runs == "drdm", "the latest runs are %q, want drdm", s.Runs)
		time.Sleep(30 * time.Minute)
		_ = stop()
		s = d.status(c)
		expect(t, s.Runs == strings.Repeat("m", 30), "the latest runs are %q, want 30 that were missed", s.Runs)
	})
}

// TestScheduleRecordIsShort checks that listings read the whole record of a schedule, whatever
// texts errors and holders contain.
func TestScheduleRecordIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label := strings.Repeat(`"`, 156) + strings.Repeat("é\U0001F512", 100)
		d, engine := &diary{t: t}, newFaulty()
		c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Label: label}})
		stop := d.every(c, minutely, &holdfast.EveryOptions{MaxAttempts: 1}, d.run(0, fmt.Errorf("%s\n\x00\xff%s", label, label)))
		time.Sleep(10*time.Minute + time.Second)
		_ = stop()
		s := d.status(c)
		expect(t, s.Missed == 10 && len(s.Gaps) != 0 && len(s.Gaps) <= 5 && s.Gaps[len(s.Gaps)-1].Last.Equal(time.Unix(946684800+600, 0)) && strings.HasPrefix(s.Gaps[0].Err, label[:150]),
			"status: %+v", s)
		info, found, err := engine.DescribeRecord(t.Context(), "job")
		expect(t, found && err == nil && info.Length <= driver.RecordHead, "the record has %d bytes, %v", info.Length, err)
	})
}

// TestScheduleIsListedWhateverItsTexts checks that a record with a done run and a failed run is
// short as well, whatever their texts are, so that listings recognize the schedule.
func TestScheduleIsListedWhateverItsTexts(t *testing.T) {
	for _, text := range []string{"<", "&", `"`, "\\", "\u2028"} {
		runInBubble(t, text, func(t *testing.T) {
			d, engine := &diary{t: t}, newFaulty()
			long := strings.Repeat(text, 60)
			c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Label: long}})
			runs := 0
			stop := d.every(c, minutely, nil, func(context.Context, holdfast.EveryRun) error {
				if runs++; runs == 1 {
					return nil
				}
				return errors.New(strings.Repeat(long, 3))
			})
			time.Sleep(2*time.Minute + 5*time.Second)
			if s := d.status(c); s.Begun == nil || s.Done != 1 {
				t.Errorf("status %+v, want a done run and a failed one", s)
			}
			e, err := c.Records().Once(t.Context(), "job")
			expect(t, err == nil && e.State == holdfast.OnceScheduled, "Once = %s, %v; want a schedule", e.State, err)
			_ = stop()
		})
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	must(t, err)
	return z
}

// TestDaily checks that each day has one run, even if the clocks change. The times are local, with
// their offset from UTC.
func TestDaily(t *testing.T) {
	for _, c := range []struct {
		why, zone    string
		hour, minute int
		from         string // two calendar days before the change
		want         []string
	}{
		{"Berlin jumps from 02:00 to 03:00", "Europe/Berlin", 2, 30, "2026-03-27T12:00:00+01:00", []string{
			"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		}},
		{"Berlin shows 02:00 to 03:00 twice", "Europe/Berlin", 2, 30, "2026-10-23T12:00:00+02:00", []string{
			"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00",
		}},
		{"at the jump itself", "Europe/Berlin", 3, 0, "2026-03-27T12:00:00+01:00", []string{
			"2026-03-28T03:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00",
		}},
		{"New York jumps from 02:00 to 03:00", "America/New_York", 2, 0, "2026-03-06T12:00:00-05:00", []string{
			"2026-03-07T02:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00",
		}},
		{"New York shows 01:00 to 02:00 twice", "America/New_York", 1, 59, "2026-10-30T12:00:00-04:00", []string{
			"2026-10-31T01:59:00-04:00", "2026-11-01T01:59:00-04:00", "2026-11-02T01:59:00-05:00",
		}},
		{"Lord Howe jumps by half an hour", "Australia/Lord_Howe", 2, 15, "2026-10-02T12:00:00+10:30", []string{
			"2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00",
		}},
		{"Lord Howe shows half an hour twice", "Australia/Lord_Howe", 1, 45, "2026-04-03T12:00:00+11:00", []string{
			"2026-04-04T01:45:00+11:00", "2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
		}},
		{"Apia had no 2011-12-30", "Pacific/Apia", 2, 30, "2011-12-27T12:00:00-10:00", []string{
			"2011-12-28T02:30:00-10:00", "2011-12-29T02:30:00-10:00", "2011-12-31T02:30:00+14:00", "2012-01-01T02:30:00+14:00",
		}},
		{"Apia, at midnight", "Pacific/Apia", 0, 0, "2011-12-28T12:00:00-10:00", []string{
			"2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00",
		}},
		{"Kwajalein had 1969-09-30 twice, in part", "Pacific/Kwajalein", 12, 0, "1969-09-28T13:00:00+11:00", []string{
			"1969-09-29T12:00:00+11:00", "1969-09-30T12:00:00+11:00", "1969-10-01T12:00:00-12:00",
		}},
		{"Beirut jumps over midnight", "Asia/Beirut", 0, 0, "2022-03-25T12:00:00+02:00", []string{
			"2022-03-26T00:00:00+02:00", "2022-03-27T01:00:00+03:00", "2022-03-28T00:00:00+03:00",
		}},
		{"São Paulo shows the hour before midnight twice", "America/Sao_Paulo", 23, 30, "2018-02-16T12:00:00-02:00", []string{
			"2018-02-16T23:30:00-02:00", "2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00",
		}},
		{"Toronto jumps into the next day", "America/Toronto", 23, 45, "1919-03-29T12:00:00-05:00", []string{
			"1919-03-29T23:45:00-05:00", "1919-03-31T00:30:00-04:00", "1919-03-31T23:45:00-04:00",
		}},
		{"UTC", "UTC", 23, 59, "2028-02-28T12:00:00Z", []string{"2028-02-28T23:59:00Z", "2028-02-29T23:59:00Z", "2028-03-01T23:59:00Z"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.from)
			must(t, err)
			daily := holdfast.Daily(zone(t, c.zone), c.hour, c.minute)
			for _, want := range c.want {
				if at = daily.Next(at.UTC()); at.Format(time.RFC3339) != want {
					t.Fatalf("it is due at %s, want %s", at.Format(time.RFC3339), want)
				}
			}
		})
	}
}

// TestDailyNeverSkipsADay checks that from 2008 to 2013 each day that existed in a zone has its
// run, at several times of day. The run is due when the clocks show the time first, if they show
// it.
func TestDailyNeverSkipsADay(t *testing.T) {
	changes := 0
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo"} {
		z := zone(t, name)
		for _, clock := range []string{"00:00", "01:45", "02:00", "02:15", "02:30", "03:00", "23:30"} {
			var hour, minute int
			must(t, errOf(fmt.Sscanf(clock, "%d:%d", &hour, &minute)))
			daily, day := holdfast.Daily(z, hour, minute), time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC)
			for at := daily.Next(time.Date(2007, 12, 31, 23, 59, 0, 0, z)); at.Year() < 2014; at = daily.Next(at.UTC()) {
				if name == "Pacific/Apia" && day.Format(time.DateOnly) == "2011-12-30" {
					day = day.AddDate(0, 0, 1)
				}
				got := at.Format(time.DateOnly)
				need(t, got == day.Format(time.DateOnly), "%s at %s: the run of %s is due on %s", name, clock, day.Format(time.DateOnly), got)
				if got := at.Format("15:04"); got != clock {
					changes++
					if before := at.Add(-time.Second).Format("15:04"); before >= clock && before < got {
						t.Fatalf("%s at %s: it is due at %s, and the clocks jump from %s", name, clock, at, before)
					}
				}
				day = day.AddDate(0, 0, 1)
			}
		}
	}
	expect(t, changes >= 40, "%d runs at the jump of a clock: it shows too little", changes)
}

// TestEveryDaily checks that Every runs a Daily once on the days on which Berlin's clocks change,
// and reports nothing as missed.
func TestEveryDaily(t *testing.T) {
	for day, want := range map[string]string{"2000-03-26": "2000-03-26T03:00+02:00", "2000-10-29": "2000-10-29T02:30+02:00"} {
		runInBubble(t, day, func(t *testing.T) {
			berlin := zone(t, "Europe/Berlin")
			begin, err := time.ParseInLocation(time.DateOnly, day, berlin)
			must(t, err)
			time.Sleep(time.Until(begin))
			d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
			stop := d.every(client, holdfast.Daily(berlin, 2, 30), nil, func(_ context.Context, run holdfast.EveryRun) error {
				d.note("%s", run.Scheduled.In(berlin).Format("2006-01-02T15:04Z07:00"))
				late := time.Since(run.Scheduled)
				expect(t, late <= time.Second, "it runs %s late", late)
				return nil
			})
			time.Sleep(6 * time.Hour)
			_ = stop()
			d.want(want)
			s := d.status(client)
			expect(t, s.Done == 1 && s.Missed == 0, "status %+v", s)
		})
	}
}

// TestEveryBadDaily checks that Every refuses a Daily without a zone or with a time that does not
// exist.
func TestEveryBadDaily(t *testing.T) {
	for name, s := range map[string]holdfast.Schedule{
		"no zone": holdfast.Daily(nil, 1, 0), "hour 24": holdfast.Daily(time.UTC, 24, 0), "hour -1": holdfast.Daily(time.UTC, -1, 0),
		"minute 60": holdfast.Daily(time.UTC, 0, 60), "minute -1": holdfast.Daily(time.UTC, 0, -1),
	} {
		err := newClient(t, newFaulty(), nil).Every(t.Context(), "job", s, nil, func(context.Context, holdfast.EveryRun) error { return nil })
		expect(t, errors.Is(err, holdfast.ErrInvalid) && strings.Contains(err.Error(), "invalid schedule"), "%s: %v", name, err)
	}
}

// TestEveryScheduleChanges checks that the times of a changed schedule before the change are not
// missed, but a time that was due by the old schedule is.
func TestEveryScheduleChanges(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		hourly := holdfast.Periodic(time.Unix(0, 0), time.Hour)
		stop := d.every(client, hourly, nil, d.run(0, nil))
		time.Sleep(90 * time.Minute)
		_ = stop()
		stop = d.every(client, minutely, nil, d.run(0, nil))
		time.Sleep(100 * time.Second)
		_ = stop()
		d.want("01:00:00 run of 01:00:00, attempt 1", "01:31:00 run of 01:31:00, attempt 1")
		time.Sleep(10 * time.Minute)
		stop = d.every(client, hourly, nil, d.run(0, nil))
		time.Sleep(time.Hour)
		_ = stop()
		d.want("missed 1: 01:32:00 to 01:32:00 ", "02:00:00 run of 02:00:00, attempt 1")
	})
}

// TestEveryClockIsSet checks that a clock that is set forward makes a leader check the schedule
// within ten seconds. A clock that is set back makes it wait, and nothing runs twice.
func TestEveryClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
		var step atomic.Int64
		opts := &holdfast.EveryOptions{}
		holdfast.SetEveryClock(opts, func() time.Time { return time.Now().Add(time.Duration(step.Load())) })
		stop := d.every(client, minutely, opts, d.run(0, nil))
		time.Sleep(65 * time.Second)
		step.Store(int64(2*time.Minute + 30*time.Second)) // the replica's clock shows 00:03:35
		time.Sleep(10 * time.Second)
		d.want("00:01:00 run of 00:01:00, attempt 1", "missed 1: 00:02:00 to 00:02:00 ", "00:01:10 run of 00:03:00, attempt 1")
		step.Store(int64(-time.Minute))
		time.Sleep(4 * time.Minute) // 00:05:15, and 00:04:15 on the replica's clock
		d.want("00:05:00 run of 00:04:00, attempt 1")
		_ = stop()
	})
}
