package show

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Short prints a duration as people read it.
func Short(d time.Duration) string { return lockinfo.Span(d) }

// number prints nothing for 0.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// Plain makes text that others have chosen safe for a terminal, and shows what
// could not be seen: a character that does not print is written as in a Go
// string, \u202e for example.
func Plain(s string) string {
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

// Columns returns rows of cells, each made plain, one below the other with a
// gap between.
func Columns(gap int, rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Plain(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush() // into memory: it cannot fail
	var lines strings.Builder
	for line := range strings.Lines(b.String()) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return lines.String()
}
