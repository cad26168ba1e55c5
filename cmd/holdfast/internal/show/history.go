package show

import (
	"fmt"
	"strings"
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
	done := time.Duration(-1) // how long ago do-once work was completed; negative if it was not
	for len(events) > 0 {
		n := max(waiters(events), 1)
		e, kind := events[n-1], leaving(events[n-1], done)
		row := []string{Clock(now.Add(-e.Ago)), lockinfo.Span(e.Ago) + " ago", kind, whose(e)}
		if n > 1 {
			row[2], row[3] = "waiters", comings(events[:n], done)
		}
		if e.Kind == holdfast.HistoryCompleted {
			done = e.Ago
		}
		rows, events = append(rows, row), events[n:]
	}
	return Columns(2, rows)
}

// leaving names the kind of an event. A client that waited when its do-once work was completed
// has not given up: the store ends its place in that step, and the client gets the result.
func leaving(e holdfast.HistoryEvent, done time.Duration) string {
	if e.Kind == holdfast.HistoryGaveUp && e.Holder.Once && done >= 0 && e.Ago+e.Waited >= done {
		return "replayed"
	}
	return e.Kind.String()
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

// comings counts clients that began to wait, that gave up, and that got the result of another.
func comings(events []holdfast.HistoryEvent, done time.Duration) string {
	counts := map[string]int{}
	for _, e := range events {
		counts[leaving(e, done)]++
	}
	var parts []string
	for _, kind := range []struct{ name, verb string }{{"queued", "began to wait"}, {"gave up", "gave up"}, {"replayed", "replayed"}} {
		if n := counts[kind.name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.verb))
		}
	}
	return strings.Join(parts, ", ")
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
