// Package view makes the JSON of package wire of what the library tells: of do-once work,
// of schedules, and all that is to be shown of one lock. The command and the server have
// it in common.
package view

import (
	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/wire"
)

// Once returns what programs are told of a do-once key.
func Once(e holdfast.OnceEntry) wire.Once {
	v := wire.Once{Key: e.Key, State: "unknown"}
	switch e.State {
	case holdfast.OnceScheduled:
		v.State, v.ExpiresInMS, v.Schedule = "schedule", wire.Left(e.ExpiresIn), Entry(e)
	case holdfast.OnceDone:
		v.State, v.ExpiresInMS, v.OutputLength = "done", wire.Left(e.ExpiresIn), &e.Length
		token := wire.TokenOf(e.Token)
		v.Token = &token
	case holdfast.OnceInProgress:
		holder := wire.WhoOf(e.Holder)
		v.State, v.HeldMS, v.ExpiresInMS, v.Holder = "in_progress", wire.Left(e.Since), wire.Left(e.ExpiresIn), &holder
	}
	return v
}

// Entry returns what programs are told of a schedule in a list.
func Entry(e holdfast.OnceEntry) *wire.Schedule {
	v := record(e.Key, e.Schedule)
	if e.Since > 0 {
		who := wire.WhoOf(e.Holder)
		v.Running = &who
	}
	return v
}

// Status returns what programs are told of one schedule.
func Status(name string, s holdfast.EveryStatus) *wire.Schedule {
	v := record(name, &s.ScheduleRecord)
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

// record returns what programs are told of the record of a schedule.
func record(name string, r *holdfast.ScheduleRecord) *wire.Schedule {
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
