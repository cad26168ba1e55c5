package show

import (
	"fmt"
	"strconv"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Table lists locks: a line for each holder.
func Table(locks []lockinfo.LockState) string {
	if len(locks) == 0 {
		return ""
	}
	rows := [][]string{{"NAME", "HOLDER", "MODE", "HELD FOR", "ENDS IN", "TOKEN", "QUEUE", "REASON"}}
	for _, lock := range locks {
		queue := strconv.Itoa(lock.QueueLength) // of the name, so in its first row
		for _, h := range lock.Holders {
			rows = append(rows, []string{lock.Name, Possessor(h), share(h), heldFor(h), timeLeft(h), number(h.Token), queue, h.Holder.Reason})
			queue = ""
		}
		if len(lock.Holders) == 0 { // its next holder has not been seen yet
			rows = append(rows, []string{lock.Name, "nobody", "", "", "", "", queue, ""})
		}
	}
	return Columns(3, rows)
}

// heldFor returns for how long a lock is held, if that is known.
func heldFor(h lockinfo.Holding) string {
	if h.Released || h.Foreign() {
		return ""
	}
	return Short(h.Since)
}

// timeLeft returns when a lease ends, if that is known; see Ends.
func timeLeft(h lockinfo.Holding) string {
	switch {
	case !Ends(h):
		return ""
	case h.ExpiresIn == lockinfo.Never:
		return "never"
	}
	return Short(h.ExpiresIn)
}

// Possessor names the holder of a lease.
func Possessor(h lockinfo.Holding) string {
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
