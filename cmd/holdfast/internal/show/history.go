package show

import (
	"fmt"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// History lists the events of a name, a line each.
func History(name string, events []holdfast.HistoryEvent) string {
	if len(events) == 0 {
		return Plain(name) + ": nothing happened in the last 24 hours\n"
	}
	rows := make([][]string, len(events))
	for i, e := range events {
		rows[i] = []string{lockinfo.Span(e.Ago) + " ago", e.Kind.String(), whose(e)}
	}
	return Columns(2, rows)
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
