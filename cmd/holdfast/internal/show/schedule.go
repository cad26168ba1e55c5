package show

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// ScheduleTable lists schedules, a line for each.
func ScheduleTable(schedules []holdfast.OnceRecord) string {
	if len(schedules) == 0 {
		return ""
	}
	rows := [][]string{{"SCHEDULE", "LAST RUN", "TOOK", "NEXT RUN", "DONE", "MISSED", "NOW"}}
	for _, e := range schedules {
		r := e.Schedule
		now := ""
		switch {
		case e.Since > 0:
			now = "running for " + lockinfo.Span(e.Since) + " by " + e.Holder.String()
		case r.Begun != nil && r.Begun.Err != "":
			now = "failing: " + r.Begun.Err
		}
		took := ""
		if !r.Last.Scheduled.IsZero() {
			took = lockinfo.Span(r.Last.Took)
		}
		rows = append(rows, []string{
			e.Key, moment(r.Last.Scheduled, "none"), took, moment(r.Next, "none"),
			strconv.FormatUint(r.Done, 10), strconv.FormatUint(r.Missed, 10), now,
		})
	}
	return Columns(3, rows)
}

// Schedule describes one schedule, and the replicas that lead it or stand by.
func Schedule(s holdfast.ScheduleState) string {
	var rows [][]string
	row := func(what, format string, args ...any) {
		rows = append(rows, []string{"  " + what, fmt.Sprintf(format, args...)})
	}
	if l := s.Last; l.Scheduled.IsZero() {
		row("last run", "none")
	} else {
		row("last run", "for %s, took %s, by %s", moment(l.Scheduled, ""), lockinfo.Span(l.Took), l.By)
	}
	row("next run", "%s", moment(s.Next, "none"))
	if b := s.Begun; b != nil && b.Err != "" {
		row("failing", "for %s, attempt %d, at %s by %s: %s", moment(b.Scheduled, ""), b.Attempts, moment(b.At, ""), b.By, b.Err)
	}
	row("runs", "%d done, %d missed", s.Done, s.Missed)
	for _, m := range s.Gaps {
		text := moment(m.First, "")
		if m.Count > 1 {
			text = fmt.Sprintf("%d from %s to %s", m.Count, text, moment(m.Last, ""))
		}
		if m.Err != "" {
			text += ": " + m.Err
		}
		row("missed", "%s", text)
	}
	if s.Led {
		row("led", "by %s; %d stand by", s.Leader, len(s.StandingBy))
	} else {
		row("led", "by nobody")
	}
	return Columns(2, rows)
}

// moment formats a time, or returns none if it is zero.
func moment(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}
