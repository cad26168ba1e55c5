package show

import (
	"fmt"
	"strconv"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The columns of the table of locks.
const (
	nameColumn = iota
	holderColumn
	modeColumn
	heldColumn
	endsColumn
	tokenColumn
	queueColumn
	reasonColumn
)

var heads = [...]string{"NAME", "HOLDER", "MODE", "HELD FOR", "ENDS IN", "TOKEN", "QUEUE", "REASON"}

// Table lists locks: a line for each holder.
func Table(locks []lockinfo.LockState) string {
	if len(locks) == 0 {
		return ""
	}
	rows := [][]string{heads[:]}
	for _, lock := range locks {
		rows = append(rows, rowsOf(lock)...)
	}
	return Columns(3, rows)
}

// rowsOf returns the cells of one lock: a row for each holder.
func rowsOf(lock lockinfo.LockState) (rows [][]string) {
	for _, h := range lock.Holders {
		rows = append(rows, []string{lock.Name, possessor(h), share(h), heldFor(h), timeLeft(h), number(h.Token), "", h.Holder.Reason})
	}
	if rows == nil { // its next holder has not been seen yet
		rows = [][]string{{lock.Name, "nobody", "", "", "", "", "", ""}}
	}
	rows[0][queueColumn] = strconv.Itoa(lock.QueueLength) // of the name
	return rows
}

// heldFor returns for how long a lock is held, if that is known.
func heldFor(h lockinfo.Holding) string {
	if h.Released || h.Foreign() {
		return ""
	}
	return lockinfo.Span(h.Since)
}

// timeLeft returns when a lease ends, if that is known; see Ends.
func timeLeft(h lockinfo.Holding) string {
	switch {
	case !Ends(h):
		return ""
	case h.ExpiresIn == lockinfo.Never:
		return "never"
	}
	return lockinfo.Span(h.ExpiresIn)
}

// possessor names the holder of a lease.
func possessor(h lockinfo.Holding) string {
	if h.Released {
		return "nobody (closed by --min-hold)"
	}
	if h.Foreign() {
		return "not holdfast"
	}
	return h.Holder.String()
}

// share describes the mode of a holder, and its permits.
func share(h lockinfo.Holding) string {
	if h.Mode.Limit() != 0 {
		return fmt.Sprintf("%s, %d of %d", h.Mode.Kind(), h.Mode.Permits(), h.Mode.Limit())
	}
	return h.Mode.Kind()
}
