package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

func TestPeriodic(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
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
		if got := daily.Next(at(after)); !got.Equal(at(want)) {
			t.Errorf("after %s it is due at %s, want %s", after, got, want)
		}
	}
}

// A schedule that says nonsense, now or later, ends Every with an error that says what.
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				err := holdfast.Every(t.Context(), newClient(t, engine, nil), "job", s, nil, func(context.Context, holdfast.EveryRun) error { return nil })
				if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), `every "job": invalid schedule: `) {
					t.Error(err)
				}
				nothingLeft(t, engine, "job", "job@schedule")
			})
		})
	}
}

type nextFunc func(time.Time) time.Time

func (f nextFunc) Next(t time.Time) time.Time { return f(t) }

// A schedule may end: then nothing is due, and Every stands by until its context ends.
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
		if s := d.status(client); !s.Next.IsZero() || !s.Led {
			t.Errorf("status: %+v", s)
		}
		_ = stop()
	})
}

// Wrong arguments and names that are something else get the documented error, and leave
// nothing.
func TestEveryBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		fn := func(context.Context, holdfast.EveryRun) error { return nil }
		ctx := t.Context()
		if _, err := c.Once(ctx, "result", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		closed := newClient(t, newFaultyOn(engine.Engine), nil)
		_ = closed.Close(ctx)
		check := func(what string, err error, want error, says string) {
			t.Helper()
			if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; want %v", what, err, want)
			}
		}
		every := func(c *holdfast.Client, name string, o *holdfast.EveryOptions) error {
			return holdfast.Every(ctx, c, name, minutely, o, fn)
		}
		check("a result", every(c, "result", nil), holdfast.ErrKindMismatch, "take another name for the schedule")
		check("closed", every(closed, "job", nil), holdfast.ErrClosed, "")
		check("no name", every(c, "", nil), holdfast.ErrInvalid, "")
		check("a long name", every(c, strings.Repeat("n", driver.MaxNameLen-8), nil), holdfast.ErrInvalid, "")
		check("no fn", holdfast.Every(ctx, c, "job", minutely, nil, nil), holdfast.ErrInvalid, "fn: it is nil")
		for what, o := range map[string]holdfast.EveryOptions{
			"TTL": {TTL: time.Nanosecond}, "Late": {Late: -1}, "Attempts": {Attempts: -1}, "Retention": {Retention: 1}, "Progress": {Progress: 1},
		} {
			check(what, every(c, "job", &o), holdfast.ErrInvalid, what)
			check(what, o.Check(), holdfast.ErrInvalid, what)
		}
		if err := (*holdfast.EveryOptions)(nil).Check(); err != nil {
			t.Error(err)
		}
		err := c.Do(ctx, "job", nil, func(ctx context.Context, _ *holdfast.Lease) error {
			return holdfast.Every(ctx, c, "job", minutely, nil, fn)
		})
		check("in its own lock", err, holdfast.ErrDeadlock, "")
		nothingLeft(t, engine, "job", "job@schedule", "result@schedule")
	})
}

// Do-once work under the name of a schedule is refused, and does not take the record for
// its result.
func TestOnceOfASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := &diary{t: t}, newClient(t, newFaulty(), nil)
		stop := d.every(c, minutely, nil, d.run(0, nil))
		_, err := c.Once(t.Context(), "job", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
		if !errors.Is(err, holdfast.ErrKindMismatch) || !strings.Contains(err.Error(), "it is a schedule") {
			t.Error(err)
		}
		if _, err := c.OnceStatus(t.Context(), "job"); !errors.Is(err, holdfast.ErrKindMismatch) {
			t.Error(err)
		}
		_ = stop()
	})
}

// The record of a schedule fits into what listings read of a record, whatever errors
// and holders say.
func TestScheduleRecordIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label := strings.Repeat("<&>é\U0001F512", 100)
		d, engine := &diary{t: t}, newFaulty()
		c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Label: label}})
		stop := d.every(c, minutely, &holdfast.EveryOptions{Attempts: 1}, d.run(0, fmt.Errorf("%s\n\x00\xff%s", label, label)))
		time.Sleep(10*time.Minute + time.Second)
		_ = stop()
		s := d.status(c)
		if s.Missed != 10 || len(s.Gaps) == 0 || len(s.Gaps) > 5 || s.Gaps[len(s.Gaps)-1].Last != time.Unix(946684800+600, 0).UTC() || !strings.HasPrefix(s.Gaps[0].Err, "<&>é") {
			t.Errorf("status: %+v", s)
		}
		info, found, err := engine.DescribeRecord(t.Context(), "job")
		if !found || err != nil || info.Length > driver.RecordHead {
			t.Errorf("the record has %d bytes, %v", info.Length, err)
		}
	})
}
