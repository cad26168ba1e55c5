// Package view turns the library's results into the JSON of package wire: do-once work, schedules,
// and the details of one lock. The command and the server share it.
package view

import (
	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/wire"
)

// Once returns a do-once key for JSON.
func Once(e holdfast.OnceRecord) wire.Once {
	v := wire.Once{Key: e.Key, State: "unknown"}
	switch e.State {
	case holdfast.OnceScheduled:
		v.State, v.ExpiresInMS, v.Schedule = "schedule", wire.Left(e.ExpiresIn), Entry(e)
	case holdfast.OnceDone:
		v.State, v.ExpiresInMS, v.OutputLength = "done", wire.Left(e.ExpiresIn), &e.Length
		v.Token = new(wire.TokenOf(e.Token))
	case holdfast.OnceInProgress:
		v.State, v.HeldMS, v.ExpiresInMS, v.Holder = "in_progress", wire.Left(e.Since), wire.Left(e.ExpiresIn), new(wire.WhoOf(e.Holder))
	}
	return v
}

// Entry returns a schedule of a list for JSON.
func Entry(e holdfast.OnceRecord) *wire.Schedule {
	v := record(e.Key, e.Schedule)
	if e.Since > 0 {
		v.Running = new(wire.WhoOf(e.Holder))
	}
	return v
}

// Status returns one schedule for JSON.
func Status(name string, s holdfast.ScheduleState) *wire.Schedule {
	v := record(name, &s.ScheduleRecord)
	v.Led = &s.Led
	if s.Led {
		v.Leader = new(wire.WhoOf(s.Leader))
	}
	if s.Running {
		v.Running = new(wire.WhoOf(s.Runner))
	}
	for _, h := range s.StandingBy {
		v.Standby = append(v.Standby, wire.WhoOf(h))
	}
	return v
}

// record returns the record of a schedule for JSON.
func record(name string, r *holdfast.ScheduleRecord) *wire.Schedule {
	v := &wire.Schedule{Name: name, Began: r.Began, Done: r.Done, Missed: r.Missed, Gaps: []wire.MissedRuns{}, Runs: []string{}}
	if !r.Next.IsZero() {
		v.Next = &r.Next
	}
	if l := r.Last; !l.Scheduled.IsZero() {
		v.Last = &wire.DoneRun{
			Scheduled: l.Scheduled, Started: l.Started, TookMS: l.Took.Milliseconds(), By: l.By, Attempt: l.Attempt, Token: wire.TokenOf(l.Token),
		}
	}
	if b := r.Begun; b != nil {
		v.Begun = &wire.BegunRun{Scheduled: b.Scheduled, At: b.At, By: b.By, Attempts: b.Attempts, Open: b.Open, Error: b.Err}
	}
	for _, run := range r.Runs {
		if word := runs[run]; word != "" { // a later version may write other letters
			v.Runs = append(v.Runs, word)
		}
	}
	for _, m := range r.Gaps {
		v.Gaps = append(v.Gaps, wire.MissedRuns{First: m.First, Last: m.Last, Count: m.Count, Error: m.Err})
	}
	return v
}

// runs are the words for the outcomes of scheduled times.
var runs = map[rune]string{'d': "done", 'r': "retried", 'm': "missed"}
