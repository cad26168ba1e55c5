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
	rows := [][]string{{"NAME", "HOLDER", "MODE", "EXPIRES IN", "TOKEN", "QUEUE", "REASON"}}
	for _, lock := range locks {
		queue := strconv.Itoa(lock.QueueLength) // of the name, so in its first row
		for _, h := range lock.Holders {
			rows = append(rows, []string{lock.Name, possessor(h), share(lock, h), timeLeft(h), number(h.Token), queue, h.Holder.Reason})
			queue = ""
		}
		if len(lock.Holders) == 0 { // its next holder has not been seen yet
			rows = append(rows, []string{lock.Name, "nobody", "", "", "", queue, ""})
		}
	}
	return columns(3, rows)
}

func possessor(h driver.Holding) string {
	if h.Released {
		return "nobody (closed by --min-hold)"
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
