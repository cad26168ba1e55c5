package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// recordView returns what programs are told of the record of a schedule.
func recordView(name string, r *holdfast.ScheduleRecord) *wire.Schedule {
	v := &wire.Schedule{Name: name, Began: r.Began, Done: r.Done, Missed: r.Missed, Gaps: []wire.MissedRuns{}}
	if !r.Next.IsZero() {
		v.Next = &r.Next
	}
	if l := r.Last; !l.Scheduled.IsZero() {
		v.Last = &wire.DoneRun{
			Scheduled: l.Scheduled, Started: l.Started, TookMS: l.Took.Milliseconds(), By: l.By, Attempt: l.Attempt, Token: wire.TokenOf(l.Token),
		}
	}
	if f := r.Failing; f != nil {
		v.Failing = &wire.FailedRun{Scheduled: f.Scheduled, At: f.At, By: f.By, Attempts: f.Attempts, Error: f.Err}
	}
	for _, m := range r.Gaps {
		v.Gaps = append(v.Gaps, wire.MissedRuns{First: m.First, Last: m.Last, Count: m.Count, Error: m.Err})
	}
	return v
}

// entryView returns what programs are told of a schedule in a list.
func entryView(e holdfast.OnceEntry) *wire.Schedule {
	v := recordView(e.Key, e.Schedule)
	if e.Since > 0 {
		who := wire.WhoOf(e.Holder)
		v.Running = &who
	}
	return v
}

// statusView returns what programs are told of one schedule.
func statusView(name string, s holdfast.EveryStatus) *wire.Schedule {
	v := recordView(name, &s.ScheduleRecord)
	v.Led = &s.Led
	if s.Led {
		who := wire.WhoOf(s.Leader)
		v.Leader = &who
	}
	if s.Running {
		who := wire.WhoOf(s.Runner)
		v.Running = &who
	}
	for _, h := range s.StandingBy {
		v.Standby = append(v.Standby, wire.WhoOf(h))
	}
	return v
}

// scheduleStatus tells how a schedule stands; its exit status says whether anybody sees
// to it.
func (a *app) scheduleStatus(ctx context.Context, c *holdfast.Client, e holdfast.OnceEntry) error {
	s, err := c.EveryStatus(ctx, e.Key)
	if err != nil {
		return err
	}
	view, status := onceView(e), exit.OK
	view.Schedule = statusView(e.Key, s)
	if !s.Led {
		status = exit.Not
	}
	return a.answerWith(status, view, render.Plain(e.Key)+" is a schedule\n"+render.Schedule(s))
}

// schedulesOf returns the schedules that are led by one of some locks, and puts them into
// the views of those.
func schedulesOf(ctx context.Context, c *holdfast.Client, locks []driver.Lock, views []wire.Lock) (found []holdfast.OnceEntry, err error) {
	for i, lock := range locks {
		name, ok := strings.CutSuffix(lock.Name, holdfast.ScheduleSuffix)
		if !ok || name == "" {
			continue
		}
		e, err := c.OnceEntry(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrUnsupported):
			return nil, nil
		case err != nil:
			return nil, err
		case e.State == holdfast.OnceScheduled:
			found = append(found, e)
			views[i].Schedule = entryView(e)
		}
	}
	return found, nil
}
