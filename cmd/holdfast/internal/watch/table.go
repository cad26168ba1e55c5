package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/render"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/waitline"
	"github.com/holdfast-locks/holdfast/driver"
)

// A Table is what a terminal shows of the rounds.
type Table struct {
	Title string        // which store, and which names
	Every time.Duration // the interval of the rounds
	Plain bool          // without colours

	seen   Round // the last one that has seen something
	outage error // why the last one has not
	since  time.Time
}

// Tell tells the table of a round.
func (t *Table) Tell(r Round) {
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
func inOrder(x, y driver.Lock) int {
	return cmp.Or(
		cmp.Compare(y.QueueLength, x.QueueLength),
		cmp.Compare(longestHeld(y).Since, longestHeld(x).Since),
		strings.Compare(x.Name, y.Name),
	)
}

// longestHeld returns the lease that somebody has had for longest, or what keeps the
// name closed.
func longestHeld(lock driver.Lock) (longest driver.Holding) {
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
func (t *Table) Draw(now time.Time, columns, rows int) string {
	columns--
	var lines []string
	line := func(style, text string) {
		text = waitline.Fit(text, columns)
		if style != "" && !t.Plain {
			text = style + text + ordinary
		}
		lines = append(lines, text)
	}
	line("", t.summary())
	switch {
	case t.outage != nil:
		line(red, fmt.Sprintf("the store has not answered for %s: %s", driver.Span(now.Sub(t.since).Truncate(time.Second)), render.Plain(t.outage.Error())))
	case t.seen.At.IsZero():
		line("", "looking ...")
	case rows > smallWindow:
		line("", "")
	}
	if room := rows - len(lines) - 1; room > 0 && len(t.seen.Locks) > 0 {
		shown := t.seen.Locks
		hidden := len(shown) - room
		if hidden > 0 {
			hidden++ // the line that says so
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
func (t *Table) summary() string {
	contended := 0
	for _, lock := range t.seen.Locks {
		if lock.QueueLength > 0 {
			contended++
		}
	}
	return fmt.Sprintf("%d locks, %d waited for  %s  every %s, q ends", len(t.seen.Locks), contended, render.Plain(t.Title), driver.Span(t.Every))
}

// styleOf says how a lock is drawn.
func styleOf(lock driver.Lock) string {
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
	name = iota
	holder
	waiting
	held
	lease
	reason
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
func cells(locks []driver.Lock, later time.Duration) [][]string {
	rows := [][]string{heads[:]}
	for _, lock := range locks {
		row := make([]string, len(heads))
		row[name], row[holder] = render.Plain(lock.Name), "nobody yet"
		if lock.QueueLength > 0 {
			row[waiting] = strconv.Itoa(lock.QueueLength)
		}
		if len(lock.Holders) > 0 {
			h := longestHeld(lock)
			row[holder], row[lease], row[reason] = possessor(lock, h), left(h, later), render.Plain(h.Holder.Reason)
			if h.Since > 0 && !h.Released {
				row[held] = driver.Span((h.Since + later).Truncate(time.Second))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// possessor says who has a lock.
func possessor(lock driver.Lock, h driver.Holding) string {
	text := render.Plain(render.Possessor(h))
	if more := len(lock.Holders) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if lock.Mode == driver.Semaphore {
		text += fmt.Sprintf(", %d of %d taken", render.Taken(lock), lock.Limit)
	}
	return text
}

// left says what is left of a lease. One that its process renews does not end then.
func left(h driver.Holding, later time.Duration) string {
	if h.ExpiresIn == driver.Never {
		return "no end"
	}
	text := driver.Span(max(h.ExpiresIn-later+time.Second-1, 0).Truncate(time.Second))
	if render.Ends(h) {
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
			cell = waitline.Fit(cell, widths[i])
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
	if w := widths[reason]; w-over() >= len(heads[reason]) {
		widths[reason] = w - over()
	}
	for i := len(widths) - 1; i >= 0 && over() > 0; i-- {
		if leasts[i] == 0 {
			widths[i] = 0
		}
	}
	for _, i := range []int{holder, name} {
		widths[i] = max(widths[i]-over(), min(widths[i], leasts[i]))
	}
}

// width returns how many columns of a window a text takes.
func width(text string) (w int) {
	for _, r := range text {
		w += waitline.Width(r)
	}
	return w
}
