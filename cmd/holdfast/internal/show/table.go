package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The columns of the table of locks.
const (
	nameColumn = iota
	holderColumn
	heldColumn
	leftColumn
	queueColumn
	modeColumn
	processColumn
	tokenColumn
	reasonColumn
)

var heads = []string{"NAME", "HOLDER", "HELD FOR", "LEFT", "QUEUE", "MODE", "PROCESS", "TOKEN", "REASON"}

// Table lists locks, a line for each holder, for a window of this width. With 0 columns, for
// another program, it separates cells by tabs and omits no column.
func Table(locks []lockinfo.LockState, columns int) string {
	if len(locks) == 0 {
		return ""
	}
	rows := [][]string{heads}
	for _, lock := range locks {
		rows = append(rows, rowsOf(lock)...)
	}
	if columns == 0 {
		return Tabbed(rows)
	}
	return strings.Join(fitted(rows, columns), "\n") + "\n"
}

// fitted returns a line for each row of the table, none wider than a window.
func fitted(rows [][]string, columns int) []string {
	return layout(gap, rows, func(widths []int) {
		for i := range widths {
			if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" }) {
				widths[i] = 0
			}
		}
		shorten(widths, columns, []int{nameColumn, holderColumn, reasonColumn}, []int{tokenColumn, processColumn, modeColumn, reasonColumn})
	})
}

const gap = 2 // between columns

// shorten makes columns narrower until they fit into a window. It first cuts the columns in long
// to a share of the window, then omits columns in the order of least, and then gives the
// remaining room to the columns in long.
func shorten(widths []int, columns int, long, least []int) {
	room := func() int {
		free := columns + gap
		for _, w := range widths {
			if w > 0 {
				free -= w + gap
			}
		}
		return free
	}
	full := slices.Clone(widths)
	for _, i := range long {
		widths[i] = min(full[i], columns/(len(long)+1))
	}
	for _, i := range least {
		if room() < 0 {
			widths[i] = 0
		}
	}
	for _, i := range long {
		if widths[i] > 0 {
			widths[i] = min(full[i], widths[i]+max(room(), 0))
		}
	}
}

// rowsOf returns the rows of one lock, one for each holder.
func rowsOf(lock lockinfo.LockState) (rows [][]string) {
	for _, h := range lock.Holders {
		rows = append(rows, []string{lock.Name, possessor(h), heldFor(h), timeLeft(h), "", share(h), process(h), number(h.Token), h.Holder.Reason})
	}
	if rows == nil { // the lock is about to be handed over
		rows = [][]string{{lock.Name, "nobody", "", "", "", "", "", "", ""}}
	}
	rows[0][queueColumn] = strconv.Itoa(lock.QueueLength) // only in the first row of a name
	return rows
}

// heldFor returns for how long a lock has been held, or "" if that is not known.
func heldFor(h lockinfo.Holding) string {
	if h.Released || h.Foreign() {
		return ""
	}
	return lockinfo.Span(h.Since)
}

// timeLeft returns when a lease ends unless it is renewed.
func timeLeft(h lockinfo.Holding) string {
	if h.ExpiresIn == lockinfo.Never {
		return "never"
	}
	return lockinfo.Span(h.ExpiresIn)
}

// possessor names the holder of a lease, without its process.
func possessor(h lockinfo.Holding) string {
	switch {
	case h.Released:
		return "nobody (closed by --min-hold)"
	case h.Foreign():
		return "not holdfast"
	}
	return withoutProcess(h.Holder).String()
}

// withoutProcess returns a holder that names its user and machine only.
func withoutProcess(h lockinfo.Holder) lockinfo.Holder {
	h.PID, h.Program = 0, ""
	return h
}

// process names the process that holds a lease.
func process(h lockinfo.Holding) string {
	if h.Released || h.Holder.Person {
		return ""
	}
	return strings.TrimSpace(number(uint64(h.Holder.PID)) + " " + h.Holder.Program)
}

// share describes the mode of a holder, and its permits. It is empty for exclusive leases.
func share(h lockinfo.Holding) string {
	switch {
	case h.Mode.Limit() != 0:
		return fmt.Sprintf("%d of %d", h.Mode.Permits(), h.Mode.Limit())
	case h.Mode == lockinfo.Exclusive:
		return ""
	}
	return h.Mode.Kind()
}
