package show

import (
	"fmt"
	"strconv"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// OnceTable lists do-once keys, and schedules in a table of their own. It shows the length of a
// result, not the result.
func OnceTable(entries []holdfast.OnceRecord) string {
	var keys, schedules []holdfast.OnceRecord
	for _, e := range entries {
		if e.State == holdfast.OnceScheduled {
			schedules = append(schedules, e)
		} else {
			keys = append(keys, e)
		}
	}
	text := ScheduleTable(schedules)
	if len(keys) == 0 {
		return text
	}
	if text != "" {
		text = "\n" + text
	}
	rows := [][]string{{"KEY", "STATE", "HELD FOR", "KEPT FOR", "BYTES", "TOKEN", "HOLDER"}}
	for _, e := range keys {
		row := []string{e.Key, e.State.String(), "", "", "", "", ""}
		switch e.State {
		case holdfast.OnceDone:
			row[3], row[4], row[5] = lockinfo.Span(e.ExpiresIn), strconv.Itoa(e.Length), number(e.Token)
		case holdfast.OnceInProgress:
			row[2], row[6] = lockinfo.Span(e.Since), e.Holder.String()
		}
		rows = append(rows, row)
	}
	return Columns(3, rows) + text
}

// onceState describes do-once work; it is empty if there was none.
func onceState(e holdfast.OnceRecord) string {
	switch e.State {
	case holdfast.OnceDone:
		text := fmt.Sprintf("done, and kept for another %s, %d bytes", lockinfo.Span(e.ExpiresIn), e.Length)
		if e.Token != 0 {
			text += fmt.Sprintf(", token %d", e.Token)
		}
		return text
	case holdfast.OnceInProgress:
		return "in progress"
	}
	return ""
}
