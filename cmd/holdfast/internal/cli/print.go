//go:build unix

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// printLine says in one line whether the lock is held.
func printLine(w io.Writer, lock driver.Lock) error {
	_, err := fmt.Fprintf(w, "%s is %s\n", plain(lock.Name), state(lock))
	return err
}

// state says whether a lock is held.
func state(lock driver.Lock) string {
	if len(lock.Holders) == 0 {
		return "free"
	}
	var text string
	switch holders := lock.Live(); len(holders) {
	case 0:
		text = possession(lastToEnd(lock.Holders))
	case 1:
		text = possession(holders[0])
	default:
		text = fmt.Sprintf("held by %d holders", len(holders))
	}
	if lock.Mode == driver.Semaphore {
		text += fmt.Sprintf(", %d of %d permits taken", taken(lock), lock.Limit)
	}
	return text
}

// shownBreaks is how many breaks are shown to people.
const shownBreaks = 5

// printLock describes one lock, and who lost it.
func printLock(w io.Writer, lock driver.Lock, broken []holdfast.Broken) error {
	if err := printLine(w, lock); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, text string) {
		if text != "" {
			fmt.Fprintf(t, "  %s\t%s\n", what, plain(text))
		}
	}
	if len(lock.Holders) > 0 {
		row("mode", lock.Mode.String())
	} else {
		row("last token", number(lock.LastToken))
	}
	for _, h := range lock.Holders {
		if len(lock.Holders) > 1 { // else the first line names it
			row("holder", strings.TrimPrefix(possession(h), "held by "))
		}
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
		row("broken", fmt.Sprintf("%s ago by %s: %s (held by %s, token %d)", short(b.Ago), b.Author, b.Reason, b.Holder, b.Token))
	}
	return t.Flush()
}

// printTable lists locks.
func printTable(w io.Writer, locks []driver.Lock) error {
	if len(locks) == 0 {
		return nil
	}
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tHOLDER\tMODE\tEXPIRES IN\tTOKEN\tQUEUE\tREASON")
	row := func(fields ...string) {
		for i, field := range fields {
			fields[i] = plain(field)
		}
		fmt.Fprintln(t, strings.Join(fields, "\t"))
	}
	for _, lock := range locks {
		queue := strconv.Itoa(lock.QueueLength) // of the name, so in its first row
		for _, h := range lock.Holders {
			row(lock.Name, possessor(h), share(lock, h), timeLeft(h), number(h.Token), queue, h.Holder.Reason)
			queue = ""
		}
		if len(lock.Holders) == 0 { // its next holder has not been seen yet
			row(lock.Name, "nobody", "", "", "", queue, "")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// possession says of one holder that it has the lock, and until when.
func possession(h driver.Holding) string {
	who, until := plain(h.Holder.String()), "for another "+timeLeft(h)
	switch {
	case h.Released:
		return "kept closed " + until + " after " + who + " released it"
	case h.ExpiresIn == driver.Never:
		return "held by " + who + " without an end"
	}
	return "held by " + who + " " + until
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

// waiting describes one place of a queue.
func waiting(p driver.Waiting) string {
	wants := p.Mode.String()
	if p.Mode == driver.Semaphore {
		wants = strconv.Itoa(p.Permits) + " permit"
		if p.Permits > 1 {
			wants += "s"
		}
	}
	text := fmt.Sprintf("%s, %s, waiting for %s", p.Holder, wants, short(p.Since))
	if p.Holder.Reason != "" {
		text += ": " + p.Holder.Reason
	}
	return text
}

// lastToEnd returns the holding that lasts longest.
func lastToEnd(holdings []driver.Holding) driver.Holding {
	return slices.MaxFunc(holdings, func(x, y driver.Holding) int { return cmp.Compare(x.ExpiresIn, y.ExpiresIn) })
}

// taken returns how many permits of a semaphore are not free.
func taken(lock driver.Lock) (permits int) {
	for _, h := range lock.Holders {
		permits += h.Permits
	}
	return permits
}

func timeLeft(h driver.Holding) string {
	if h.ExpiresIn == driver.Never {
		return "never"
	}
	return short(h.ExpiresIn)
}

// short prints a duration as people read it.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// number prints nothing for 0.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// plain makes text that others have chosen safe for a terminal, and shows what
// could not be seen: whatever does not print stands there as Go would write it
// in a string, \u202e for example.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
