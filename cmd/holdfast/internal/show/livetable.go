package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// smallWindow is the greatest number of rows for which no empty line is drawn.
const smallWindow = 8

// A LiveTable is the Table of the last round, on a terminal.
type LiveTable struct {
	Title string        // the store and the names
	Every time.Duration // the interval of the rounds
	Plain bool          // without colours

	seen   Round // the last successful round
	outage error // the error of the last round
	since  time.Time
}

// Tell updates the table with a round.
func (t *LiveTable) Tell(r Round) {
	switch {
	case r.Err == nil:
		t.seen, t.outage = r, nil
		slices.SortFunc(t.seen.Locks, inOrder)
	case t.outage == nil:
		t.since = r.At
		fallthrough
	default:
		t.outage = r.Err
	}
}

// inOrder sorts the longest queues first, then the oldest holds.
func inOrder(x, y lockinfo.LockState) int {
	return cmp.Or(
		cmp.Compare(y.QueueLength, x.QueueLength),
		cmp.Compare(oldest(y), oldest(x)),
		strings.Compare(x.Name, y.Name),
	)
}

// oldest returns for how long the longest holder of a lock has held it.
func oldest(lock lockinfo.LockState) (since time.Duration) {
	for _, h := range lock.Live() {
		since = max(since, h.Since)
	}
	return since
}

// Control sequences. Each line is drawn over the previous one in its place.
const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"

	bold, dim, red, yellow, ordinary = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[m"
)

// Draw returns the text that draws the table at the given time in a window of this size. It
// leaves the last column free, so that no line wraps.
func (t *LiveTable) Draw(now time.Time, columns, rows int) string {
	lines := t.lines(now, t.summary()+", q ends", columns-1, rows)
	return home + strings.Join(lines[:min(len(lines), rows)], clearLine+"\r\n") + clearLine + clearRest
}

// Text returns the table for a terminal that cannot rewrite a line.
func (t *LiveTable) Text(now time.Time, columns int) string {
	t.Plain = true
	return strings.Join(t.lines(now, Clock(now)+"  "+t.summary(), columns-1, math.MaxInt), "\n") + "\n"
}

// lines returns the lines of the table, with first as the first one.
func (t *LiveTable) lines(now time.Time, first string, columns, rows int) (lines []string) {
	line := func(style, text string) {
		text = Fit(text, columns)
		if style != "" && !t.Plain {
			text = style + text + ordinary
		}
		lines = append(lines, text)
	}
	line("", first)
	switch {
	case t.outage != nil:
		line(red, fmt.Sprintf("the store has not answered for %s: %s", lockinfo.Span(now.Sub(t.since).Truncate(time.Second)), Plain(t.outage.Error())))
	case t.seen.At.IsZero():
		line("", "looking ...")
	case rows > smallWindow:
		line("", "")
	}
	table, styles := t.rows(now.Sub(t.seen.At))
	room := rows - len(lines) - 1
	if room <= 0 || len(table) == 1 {
		return lines
	}
	hidden := len(table) - 1 - room
	if hidden > 0 {
		hidden++ // this line itself
		table = table[:len(table)-hidden]
	}
	for i, text := range fitted(table, columns) {
		line(styles[i], text)
	}
	if hidden > 0 {
		line("", fmt.Sprintf("... and %d more", hidden))
	}
	return lines
}

// summary returns the text of the first line.
func (t *LiveTable) summary() string {
	contended := 0
	for _, lock := range t.seen.Locks {
		if lock.QueueLength > 0 {
			contended++
		}
	}
	return fmt.Sprintf("%s, %d waited for  %s  every %s", counted(len(t.seen.Locks), "lock"), contended, Plain(t.Title), lockinfo.Span(t.Every))
}

// rows returns the table as it is at a time later than the round, and the style of each row.
func (t *LiveTable) rows(later time.Duration) (rows [][]string, styles []string) {
	rows, styles = [][]string{heads}, []string{bold}
	for _, lock := range t.seen.Locks {
		lock.Holders = slices.Clone(lock.Holders)
		for i := range lock.Holders {
			h := &lock.Holders[i]
			h.Since, h.ExpiresIn = (h.Since + later).Truncate(time.Second), whole(timeAfter(h.ExpiresIn, later))
		}
		for _, row := range rowsOf(lock) {
			rows, styles = append(rows, row), append(styles, styleOf(lock))
		}
	}
	return rows, styles
}

// styleOf returns the style of the rows of a lock: yellow if clients wait for it, dim if it has
// no live lease.
func styleOf(lock lockinfo.LockState) string {
	switch {
	case lock.QueueLength > 0:
		return yellow
	case len(lock.Live()) == 0:
		return dim
	}
	return ""
}
