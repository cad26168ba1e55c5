package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A LiveTable is the Table of the last round, on a terminal.
type LiveTable struct {
	Title string        // which store, and which names
	Every time.Duration // the interval of the rounds
	Plain bool          // without colours

	seen   Round // the last one that has seen something
	outage error // why the last one has not
	since  time.Time
}

// Tell tells the table of a round.
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

// inOrder puts the longest queues first, then the oldest holds.
func inOrder(x, y lockinfo.LockState) int {
	return cmp.Or(
		cmp.Compare(y.QueueLength, x.QueueLength),
		cmp.Compare(oldest(y), oldest(x)),
		strings.Compare(x.Name, y.Name),
	)
}

// oldest returns for how long the oldest holder of a lock has held it.
func oldest(lock lockinfo.LockState) (since time.Duration) {
	for _, h := range lock.Live() {
		since = max(since, h.Since)
	}
	return since
}

// What a terminal obeys. A line is drawn over what stood there.
const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"

	bold, dim, red, yellow, ordinary = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[m"
)

// Draw returns what draws the table on a window of so many columns and rows, as it is
// at an instant. Nothing is drawn in the last column, so that no line is wrapped.
func (t *LiveTable) Draw(now time.Time, columns, rows int) string {
	columns--
	var lines []string
	line := func(style, text string) {
		text = Fit(text, columns)
		if style != "" && !t.Plain {
			text = style + text + ordinary
		}
		lines = append(lines, text)
	}
	line("", t.summary())
	switch {
	case t.outage != nil:
		line(red, fmt.Sprintf("the store has not answered for %s: %s", lockinfo.Span(now.Sub(t.since).Truncate(time.Second)), Plain(t.outage.Error())))
	case t.seen.At.IsZero():
		line("", "looking ...")
	case rows > smallWindow:
		line("", "")
	}
	table, styles := t.rows(now.Sub(t.seen.At))
	if room := rows - len(lines) - 1; room > 0 && len(table) > 1 {
		hidden := len(table) - 1 - room
		if hidden > 0 {
			hidden++ // this line itself
			table = table[:len(table)-hidden]
		}
		for i, text := range layout(gap, table, func(widths []int) { narrow(widths, columns) }) {
			line(styles[i], text)
		}
		if hidden > 0 {
			line("", fmt.Sprintf("... and %d more", hidden))
		}
	}
	return home + strings.Join(lines[:min(len(lines), rows)], clearLine+"\r\n") + clearLine + clearRest
}

// summary is the first line.
func (t *LiveTable) summary() string {
	contended := 0
	for _, lock := range t.seen.Locks {
		if lock.QueueLength > 0 {
			contended++
		}
	}
	return fmt.Sprintf("%d locks, %d waited for  %s  every %s, q ends", len(t.seen.Locks), contended, Plain(t.Title), lockinfo.Span(t.Every))
}

// rows returns the table as it is a time after the round, and the style of each row.
func (t *LiveTable) rows(later time.Duration) (rows [][]string, styles []string) {
	rows, styles = [][]string{heads[:]}, []string{bold}
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

const (
	gap         = 2
	smallWindow = 8 // rows; no empty line is drawn there
)

// narrow makes columns narrower until they fit in a window: first the reason is cut, then
// columns are left out, then holders and names are cut.
func narrow(widths []int, columns int) {
	over := func() int {
		all := -gap
		for _, w := range widths {
			if w > 0 {
				all += w + gap
			}
		}
		return max(all-columns, 0)
	}
	if w := widths[reasonColumn]; w-over() >= len(heads[reasonColumn]) {
		widths[reasonColumn] = w - over()
	}
	for _, i := range []int{reasonColumn, tokenColumn, modeColumn, endsColumn, heldColumn} {
		if over() > 0 {
			widths[i] = 0
		}
	}
	const leastHolder, leastName = 12, 10
	widths[holderColumn] = max(widths[holderColumn]-over(), min(widths[holderColumn], leastHolder))
	widths[nameColumn] = max(widths[nameColumn]-over(), min(widths[nameColumn], leastName))
}
