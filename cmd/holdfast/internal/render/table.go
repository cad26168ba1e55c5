package render

import (
	"fmt"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
)

// Table lists locks: a line for each holder.
func Table(locks []driver.Lock) string {
	if len(locks) == 0 {
		return ""
	}
	rows := [][]string{{"NAME", "HOLDER", "MODE", "HELD FOR", "ENDS IN", "TOKEN", "QUEUE", "REASON"}}
	for _, lock := range locks {
		queue := strconv.Itoa(lock.QueueLength) // of the name, so in its first row
		for _, h := range lock.Holders {
			rows = append(rows, []string{lock.Name, Possessor(h), share(lock, h), heldFor(h), timeLeft(h), number(h.Token), queue, h.Holder.Reason})
			queue = ""
		}
		if len(lock.Holders) == 0 { // its next holder has not been seen yet
			rows = append(rows, []string{lock.Name, "nobody", "", "", "", "", queue, ""})
		}
	}
	return Columns(3, rows)
}

// heldFor says since when a lock is held, as far as that is known.
func heldFor(h driver.Holding) string {
	if h.Released || h.Foreign() {
		return ""
	}
	return Short(h.Since)
}

// timeLeft says when a lock is free, where that is known; see Ends.
func timeLeft(h driver.Holding) string {
	switch {
	case !Ends(h):
		return ""
	case h.ExpiresIn == driver.Never:
		return "never"
	}
	return Short(h.ExpiresIn)
}

// Possessor names whoever has a lease, or says that nobody has.
func Possessor(h driver.Holding) string {
	if h.Released {
		return "nobody (closed by --min-hold)"
	}
	if h.Foreign() {
		return "not holdfast"
	}
	return h.Holder.String()
}

// share says in which mode a holder has the lock, and how much of it.
func share(lock driver.Lock, h driver.Holding) string {
	if lock.Mode == driver.Semaphore {
		return fmt.Sprintf("%s, %d of %d", lock.Mode, h.Permits, lock.Limit)
	}
	return lock.Mode.String()
}
