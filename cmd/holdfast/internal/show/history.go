package show

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// History lists the events of a name since a time, one a line. Events of clients that only began
// or gave up waiting are counted in one line between two other events.
func History(name string, events []holdfast.HistoryEvent, since, now time.Time) string {
	if len(events) == 0 {
		return fmt.Sprintf("%s: nothing happened in the last %s\n", Plain(name), lockinfo.Span(now.Sub(since)))
	}
	var rows [][]string
	for len(events) > 0 {
		n := waiters(events)
		e := events[max(n, 1)-1]
		row := []string{Clock(now.Add(-e.Ago)), lockinfo.Span(e.Ago) + " ago", e.Kind.String(), whose(e)}
		if n > 1 {
			row[2], row[3] = "waiters", comings(events[:n])
		}
		rows, events = append(rows, row), events[max(n, 1):]
	}
	return Columns(2, rows)
}

// Clock returns t as a local clock shows it.
func Clock(t time.Time) string { return t.Local().Format("Mon 2 Jan 15:04:05") }

// waiters returns how many events of waiting clients come first.
func waiters(events []holdfast.HistoryEvent) int {
	for i, e := range events {
		if e.Kind != holdfast.HistoryQueued && e.Kind != holdfast.HistoryGaveUp {
			return i
		}
	}
	return len(events)
}

// comings counts clients that began to wait, and clients that gave up.
func comings(events []holdfast.HistoryEvent) string {
	left := 0
	for _, e := range events {
		if e.Kind == holdfast.HistoryGaveUp {
			left++
		}
	}
	return fmt.Sprintf("%d began to wait, %d gave up", len(events)-left, left)
}

// whose describes the lease or place of an event.
func whose(e holdfast.HistoryEvent) string {
	text := e.Holder.String()
	if e.Mode != holdfast.Exclusive {
		text += ", " + e.Mode.Kind()
	}
	if e.Mode.Limit() != 0 {
		text += ", " + e.Mode.String()
	}
	if e.Token > 0 {
		text += fmt.Sprintf(", token %d", e.Token)
	}
	switch {
	case e.Kind == holdfast.HistoryBroken:
		return fmt.Sprintf("%s, held for %s, by %s: %s", text, lockinfo.Span(e.Held), e.Author, e.Reason)
	case e.Kind.Ends():
		text += ", held for " + lockinfo.Span(e.Held)
	case e.Kind == holdfast.HistoryHandedOver, e.Kind == holdfast.HistoryGaveUp:
		text += ", waited for " + lockinfo.Span(e.Waited)
	}
	if e.Holder.Reason != "" {
		text += ": " + e.Holder.Reason
	}
	return text
}
