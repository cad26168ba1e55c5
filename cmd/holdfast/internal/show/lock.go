package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// LockLine describes in one line whether the lock is held.
func LockLine(lock lockinfo.LockState) string { return Plain(lock.Name) + " is " + state(lock) + "\n" }

// state describes whether a lock is held.
func state(lock lockinfo.LockState) string {
	if len(lock.Holders) == 0 {
		return "free"
	}
	var text string
	switch holders := lock.Live(); len(holders) {
	case 0:
		text = Possession(lastToEnd(lock.Holders))
	case 1:
		text = Possession(holders[0])
	default:
		text = fmt.Sprintf("held by %d holders", len(holders))
	}
	if lock.Mode.Limit() != 0 {
		text += fmt.Sprintf(", %s taken", lock.Mode)
	}
	return text
}

// How many breaks and places people see.
const (
	shownBreaks = 5
	shownPlaces = 10
)

// Lock describes one lock, the do-once work under its name, its breaks, and the locks for which
// its holders wait themselves.
func Lock(l view.Lock, waiters Waiters, now time.Time) string {
	lock, once, broken := l.LockState, l.Once, l.Broken
	var rows [][]string
	row := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{"  " + what, text})
		}
	}
	if len(lock.Holders) > 0 {
		row("mode", lock.Mode.Kind())
	} else {
		row("last token", number(lock.LastToken))
	}
	row("once", onceState(once))
	for _, h := range lock.Holders {
		if len(lock.Holders) > 1 { // otherwise the first line names the holder
			row("holder", strings.TrimPrefix(Possession(h), "held by "))
		}
		if !h.Released && !h.Foreign() {
			row("since", Clock(now.Add(-h.Since)))
		}
		row("lease", renewal(h))
		row("permits", number(uint64(h.Mode.Permits())))
		row("reason", h.Holder.Reason)
		for _, key := range slices.Sorted(maps.Keys(h.Holder.Labels)) {
			row("label", key+"="+h.Holder.Labels[key])
		}
		row("token", number(h.Token))
		for _, name := range waiters.behind(h) {
			row("blocked", "it waits for "+name+" itself")
		}
	}
	for i, p := range lock.Queue[:min(len(lock.Queue), shownPlaces)] {
		row("queue", strconv.Itoa(i+1)+". "+waiting(p))
	}
	if more := lock.QueueLength - shownPlaces; more > 0 {
		row("queue", fmt.Sprintf("and %d more: see --json", more))
	}
	if earlier := len(broken) - shownBreaks; earlier > 0 {
		row("broken", fmt.Sprintf("%d earlier: see --json", earlier))
		broken = broken[earlier:]
	}
	for _, b := range broken {
		row("broken", fmt.Sprintf("%s ago by %s: %s (held by %s, token %d)", lockinfo.Span(b.Ago), b.Author, b.Reason, b.Holder, b.Token))
	}
	line := LockLine(lock)
	switch {
	case len(lock.Holders) > 0:
	case once.State == holdfast.OnceDone:
		line = Plain(lock.Name) + " is done\n" // and free for work that is not do-once
	case lock.LastToken == 0 && len(rows) == 0:
		line = Plain(lock.Name) + " is free, and was not used in the last 24 hours\n"
	}
	if l.Schedule != nil {
		return line + Columns(2, rows) + Schedule(*l.Schedule)
	}
	return line + Columns(2, rows)
}

// Possession describes one holder, and since when it has had the lock.
func Possession(h lockinfo.Holding) string { return Plain(h.Possession()) }

// renewal describes the expiry of a lease that its process renews. It is empty for other leases.
func renewal(h lockinfo.Holding) string {
	if Ends(h) {
		return ""
	}
	return "ends in " + lockinfo.Span(h.ExpiresIn) + " unless it is renewed"
}

// Ends reports whether a lease ends at its expiry. It does if no process renews it. A foreign
// client's lease counts too, because the store knows no more about it.
func Ends(h lockinfo.Holding) bool { return h.Released || h.Holder.Person || h.Foreign() }

// waiting describes one place of a queue.
func waiting(p lockinfo.Place) string {
	wants := p.Mode.Kind()
	if n := p.Mode.Permits(); n != 0 {
		wants = counted(n, "permit")
	}
	text := fmt.Sprintf("%s, %s, waiting for %s", p.Holder, wants, lockinfo.Span(p.Since))
	if p.Holder.Reason != "" {
		text += ": " + p.Holder.Reason
	}
	return text
}

// lastToEnd returns the holding that lasts longest.
func lastToEnd(holdings []lockinfo.Holding) lockinfo.Holding {
	return slices.MaxFunc(holdings, func(x, y lockinfo.Holding) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
}
