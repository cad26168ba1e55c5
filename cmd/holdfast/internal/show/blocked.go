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

// Waiters maps each process or person to the names of the locks for which it waits.
type Waiters map[string][]string

// WaitersOf returns the clients that wait for these locks, whose queues must be known.
func WaitersOf(locks []lockinfo.LockState) Waiters {
	all := Waiters{}
	for _, lock := range locks {
		for _, p := range lock.Queue {
			if who := party(p.Holder); who != "" && !slices.Contains(all[who], lock.Name) {
				all[who] = append(all[who], lock.Name)
			}
		}
	}
	return all
}

// party returns a text that is the same for all leases and places of one process or person. It is
// empty if the holder does not describe itself well enough.
func party(h lockinfo.Holder) string {
	switch {
	case h.PID != 0:
		return fmt.Sprintf("%q", []string{h.Caller, h.Host, strconv.Itoa(h.PID)})
	case h.Person, h.Label != "":
		return fmt.Sprintf("%q", []string{h.Caller, h.Host, h.User, h.Label, h.Program})
	}
	return ""
}

// behind returns the locks for which the holder of a lease itself waits.
func (w Waiters) behind(h lockinfo.Holding) []string {
	if h.Released || h.Foreign() {
		return nil
	}
	return w[party(h.Holder)]
}

// Blocked lists the locks for which clients wait, the longest wait first, with a line for each
// holder. The line has the number of waiting clients, the longest wait, and the locks for which
// the holder itself waits. columns is as for Table.
func Blocked(locks []lockinfo.LockState, columns int) string {
	if len(locks) == 0 {
		return ""
	}
	locks = slices.Clone(locks)
	slices.SortFunc(locks, func(x, y lockinfo.LockState) int {
		return cmp.Or(cmp.Compare(longest(y), longest(x)), strings.Compare(x.Name, y.Name))
	})
	waiters, held := WaitersOf(locks), map[string]lockinfo.LockState{}
	for _, lock := range locks {
		held[lock.Name] = lock
	}
	rows := [][]string{{"NAME", "HOLDER", "HELD FOR", "WAITING", "WAITS FOR", "REASON"}}
	for _, lock := range locks {
		for i, h := range orNobody(lock.Holders) {
			row := []string{lock.Name, "nobody", "", "", "", ""}
			if len(lock.Holders) > 0 {
				row[1], row[2], row[4], row[5] = possessor(h), heldFor(h), strings.Join(waiters.behind(h), ", "), h.Holder.Reason
			}
			if row[4] != "" && waiters.returns(held, lock.Name, h) {
				row[4] += " (deadlock)"
			}
			if i == 0 {
				row[3] = fmt.Sprintf("%d, %s", lock.QueueLength, lockinfo.Span(longest(lock)))
			}
			rows = append(rows, row)
		}
	}
	if columns == 0 {
		return Tabbed(rows)
	}
	lines := layout(gap, rows, func(widths []int) { shorten(widths, columns, []int{0, 1, 4, 5}, []int{5}) })
	return strings.Join(lines, "\n") + "\n"
}

// orNobody returns the holders, or one empty holding if there are none.
func orNobody(holders []lockinfo.Holding) []lockinfo.Holding {
	if len(holders) == 0 {
		return make([]lockinfo.Holding, 1)
	}
	return holders
}

// longest returns the longest wait in a queue.
func longest(lock lockinfo.LockState) (since time.Duration) {
	for _, p := range lock.Queue {
		since = max(since, p.Since)
	}
	return since
}

// returns reports whether a chain of waits leads from the holder of a lock back to the lock.
// A chain ends at a semaphore: another holder may release a permit.
func (w Waiters) returns(held map[string]lockinfo.LockState, name string, h lockinfo.Holding) bool {
	next, seen := slices.Clone(w.behind(h)), map[string]bool{}
	for len(next) > 0 {
		at := held[next[0]]
		next = next[1:]
		if at.Name == name {
			return at.Mode.Limit() == 0
		}
		if seen[at.Name] || at.Mode.Limit() != 0 {
			continue
		}
		seen[at.Name] = true
		for _, h := range at.Holders {
			next = append(next, w.behind(h)...)
		}
	}
	return false
}
