// Package render puts the answers of the command into words for people.
package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// Line says in one line whether the lock is held.
func Line(lock driver.Lock) string { return Plain(lock.Name) + " is " + state(lock) + "\n" }

// state says whether a lock is held.
func state(lock driver.Lock) string {
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
	if lock.Mode == driver.Semaphore {
		text += fmt.Sprintf(", %d of %d permits taken", Taken(lock), lock.Limit)
	}
	return text
}

// shownBreaks is how many breaks are shown to people.
const shownBreaks = 5

// Lock describes one lock, the do-once work under its name, and who lost it.
func Lock(lock driver.Lock, once holdfast.OnceEntry, broken []driver.Broken) string {
	var rows [][]string
	row := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{"  " + what, text})
		}
	}
	if len(lock.Holders) > 0 {
		row("mode", lock.Mode.String())
	} else {
		row("last token", number(lock.LastToken))
	}
	row("once", onceState(once))
	for _, h := range lock.Holders {
		if len(lock.Holders) > 1 { // else the first line names it
			row("holder", strings.TrimPrefix(Possession(h), "held by "))
		}
		row("lease", renewal(h))
		row("permits", number(uint64(h.Permits)))
		row("reason", h.Holder.Reason)
		for _, key := range slices.Sorted(maps.Keys(h.Holder.Labels)) {
			row("label", key+"="+h.Holder.Labels[key])
		}
		row("token", number(h.Token))
	}
	for i, p := range lock.Queue {
		row("queue", strconv.Itoa(i+1)+". "+waiting(p))
	}
	if earlier := len(broken) - shownBreaks; earlier > 0 {
		row("broken", fmt.Sprintf("%d earlier: see --json", earlier))
		broken = broken[earlier:]
	}
	for _, b := range broken {
		row("broken", fmt.Sprintf("%s ago by %s: %s (held by %s, token %d)", Short(b.Ago), b.Author, b.Reason, b.Holder, b.Token))
	}
	line := Line(lock)
	if len(lock.Holders) == 0 && once.State == holdfast.OnceDone {
		line = Plain(lock.Name) + " is done\n" // and free for work that is not do-once
	}
	return line + Columns(2, rows)
}

// Possession says of one holder that it has the lock, and since when.
func Possession(h driver.Holding) string { return Plain(h.Possession()) }

// renewal says what the TTL of a lease means that its process renews: nothing for
// those who wait, as long as it does.
func renewal(h driver.Holding) string {
	if Ends(h) {
		return ""
	}
	return "ends in " + Short(h.ExpiresIn) + " unless it is renewed"
}

// Ends reports whether what is left of a lease says when it is over: nobody will
// renew it, or it is a foreign client's, and the store knows nothing else.
func Ends(h driver.Holding) bool { return h.Released || h.Holder.Person || h.Foreign() }

// waiting describes one place of a queue.
func waiting(p driver.Waiting) string {
	wants := p.Mode.String()
	if p.Mode == driver.Semaphore {
		wants = strconv.Itoa(p.Permits) + " permit"
		if p.Permits > 1 {
			wants += "s"
		}
	}
	text := fmt.Sprintf("%s, %s, waiting for %s", p.Holder, wants, Short(p.Since))
	if p.Holder.Reason != "" {
		text += ": " + p.Holder.Reason
	}
	return text
}

// lastToEnd returns the holding that lasts longest.
func lastToEnd(holdings []driver.Holding) driver.Holding {
	return slices.MaxFunc(holdings, func(x, y driver.Holding) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
}

// Taken returns how many permits of a semaphore are not free.
func Taken(lock driver.Lock) (permits int) {
	for _, h := range lock.Holders {
		permits += h.Permits
	}
	return permits
}
