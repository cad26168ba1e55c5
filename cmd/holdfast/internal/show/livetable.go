package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Table is what a terminal shows of the rounds.
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

// inOrder puts first what most wait for, then what has been held for longest.
func inOrder(x, y lockinfo.LockState) int {
	return cmp.Or(
		cmp.Compare(y.QueueLength, x.QueueLength),
		cmp.Compare(longestHeld(y).Since, longestHeld(x).Since),
		strings.Compare(x.Name, y.Name),
	)
}

// longestHeld returns the lease that somebody has had for longest, or what keeps the
// name closed.
func longestHeld(lock lockinfo.LockState) (longest lockinfo.Holding) {
	for i, h := range lock.Holders {
		if i == 0 || longest.Released && !h.Released || longest.Released == h.Released && h.Since > longest.Since {
			longest = h
		}
	}
	return longest
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
	if room := rows - len(lines) - 1; room > 0 && len(t.seen.Locks) > 0 {
		shown := t.seen.Locks
		hidden := len(shown) - room
		if hidden > 0 {
			hidden++ // this line itself
			shown = shown[:max(room-1, 0)]
		}
		text := layout(cells(shown, now.Sub(t.seen.At)), columns)
		line(bold, text[0])
		for i, lock := range shown {
			line(styleOf(lock), text[i+1])
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

// styleOf returns the style of a lock.
func styleOf(lock lockinfo.LockState) string {
	switch {
	case lock.QueueLength > 0:
		return yellow
	case len(lock.Live()) == 0:
		return dim
	}
	return ""
}

// The columns of the table, and how narrow they may become. A column of which the
// least is 0 is left out where there is no room, the last in this list first.
const (
	nameColumn = iota
	holderColumn
	queueColumn
	heldColumn
	leaseColumn
	reasonColumn
)

var (
	heads  = [...]string{"NAME", "HOLDER", "WAITING", "HELD FOR", "LEASE", "REASON"}
	leasts = [...]int{10, 12, 7, 0, 0, 0}
)

const (
	gap         = 2
	smallWindow = 8 // rows; no empty line is drawn there
)

// cells returns what the table says, a row for each lock: later is the time since they
// were seen.
func cells(locks []lockinfo.LockState, later time.Duration) [][]string {
	rows := [][]string{heads[:]}
	for _, lock := range locks {
		row := make([]string, len(heads))
		row[nameColumn], row[holderColumn] = Plain(lock.Name), "nobody yet"
		if lock.QueueLength > 0 {
			row[queueColumn] = strconv.Itoa(lock.QueueLength)
		}
		if len(lock.Holders) > 0 {
			h := longestHeld(lock)
			row[holderColumn], row[leaseColumn], row[reasonColumn] = possessor(lock, h), left(h, later), Plain(h.Holder.Reason)
			if h.Since > 0 && !h.Released {
				row[heldColumn] = lockinfo.Span((h.Since + later).Truncate(time.Second))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// possessor names the holders of a lock.
func possessor(lock lockinfo.LockState, h lockinfo.Holding) string {
	text := Plain(Possessor(h))
	if more := len(lock.Holders) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if lock.Mode.Limit() != 0 {
		text += fmt.Sprintf(", %d of %d taken", lock.Mode.Permits(), lock.Mode.Limit())
	}
	return text
}

// left returns the time left of a lease. A renewed lease does not end then.
func left(h lockinfo.Holding, later time.Duration) string {
	if h.ExpiresIn == lockinfo.Never {
		return "no end"
	}
	text := lockinfo.Span(max(h.ExpiresIn-later+time.Second-1, 0).Truncate(time.Second))
	if Ends(h) {
		return "ends in " + text
	}
	return text
}

// layout puts the cells of rows below one another, in so many columns of a window.
func layout(rows [][]string, columns int) []string {
	widths := make([]int, len(heads))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	narrow(widths, columns)
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			cell = Fit(cell, widths[i])
			b.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+gap))
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// narrow makes columns narrower until they fit: first the reason is cut, then columns
// are left out, then holders and names are cut.
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
	for i := len(widths) - 1; i >= 0 && over() > 0; i-- {
		if leasts[i] == 0 {
			widths[i] = 0
		}
	}
	for _, i := range []int{holderColumn, nameColumn} {
		widths[i] = max(widths[i]-over(), min(widths[i], leasts[i]))
	}
}

// width returns how many columns of a window a text takes.
func width(text string) (w int) {
	for _, r := range text {
		w += Width(r)
	}
	return w
}
